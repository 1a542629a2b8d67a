# SPDX-License-Identifier: Apache-2.0
"""The residual mix of the decode path against spec 2.2 in float64: every variant, as built.

Cubins come from `.gpu/kernels/`, made by `kimi-k3 kernels build --cache .gpu/kernels` anywhere.
"""

from itertools import pairwise

import pytest
import torch

from fasttrack.manifest.variants import Variant
from fasttrack.pytest_plugin import Recorder
from kimi_k3.decode.comm.health import Health, HealthRecord
from kimi_k3.decode.comm.interface import Site
from kimi_k3.decode.kernels.launch import LaunchError
from kimi_k3.decode.kernels.launch import loaded as digests
from kimi_k3.decode.kernels.wait import SENTINEL
from tests.gpu.oracle import ON_GPU, Inputs, assert_same, attempts
from tests.gpu.residual_mix import RANK, Call, loaded, variant, variants

pytestmark = pytest.mark.skipif(not ON_GPU, reason="cubins run on a GPU alone")
SM90 = variants("sm_90a")
EACH = pytest.mark.parametrize("one", SM90, ids=lambda one: one.id)
WAITING = pytest.mark.parametrize("form", ["add-mailbox", "plain-mailbox"])


def rows_of(one: Variant) -> tuple[int, ...]:
    low, high = one.rows
    return tuple(sorted({low, low + 1, (low + high) // 2, high}))


def inputs(seed: int) -> Inputs:
    return Inputs(torch.Generator().manual_seed(seed))


@EACH
def test_a_variant_computes_the_mix_and_touches_nothing_else(
    one: Variant, fasttrack_record: Recorder
) -> None:
    for rows in rows_of(one):
        for saved in (1, 3, 8):
            for poison, drawn in attempts(rows * 31 + saved):
                call = Call(one, rows, saved, poison, drawn, parity=rows % 2)
                call.launch()
                call.check()
    kernel = loaded(one.id)
    fasttrack_record.launched(
        one.kernel, kernel.launches, kernel.candidate.built.digest, variant=one.id
    )


@EACH
def test_launches_are_of_the_bytes_that_were_built(one: Variant) -> None:
    kernel = loaded(one.id)
    assert digests()[kernel.candidate.built.digest] == kernel.candidate.built.entry


@EACH
def test_a_variant_repeats_itself_bit_for_bit(one: Variant) -> None:
    call = Call(one, one.rows[1], 8, torch.nan, inputs(5))
    call.launch()
    torch.cuda.synchronize()
    first = call.tensor("out").clone()
    for _ in range(20):
        for name in ("mailbox", "out"):
            call.tensor(name).copy_(call.before[name])
        call.launch()
        torch.cuda.synchronize()
        assert_same(call.tensor("out"), first)


@EACH
@pytest.mark.parametrize("pdl", [False, True], ids=["full edges", "early starts"])
def test_replays_of_a_graph_take_what_lies_there_now(one: Variant, pdl: bool) -> None:
    call = Call(one, one.rows[0], 2, torch.nan, inputs(6))
    call.launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call.launch(pdl=pdl)
    for _ in range(3):
        call.refill()
        graph.replay()
        call.check()


@pytest.mark.parametrize("rows", [1, 8, 64])
def test_a_chain_of_early_starts_gives_the_bits_of_full_edges(rows: int) -> None:
    """Each launch reads what the one before has written."""

    def chain(*, pdl: bool) -> list[torch.Tensor]:
        calls = [Call(variant("add", rows), rows, 8, torch.nan, inputs(7)) for _ in range(6)]
        for earlier, later in pairwise(calls):
            later.values["prefix"] = earlier.values["prefix_out"]
            later.values["delta"] = earlier.values["out"]

        def run() -> None:
            for call in calls:
                call.launch(pdl=pdl)

        run()
        torch.cuda.synchronize()
        for call in calls:
            call.tensor("out")[:rows] = torch.nan
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
        graph.replay()
        torch.cuda.synchronize()
        return [call.tensor("out")[:rows].clone() for call in calls]

    for got, want in zip(chain(pdl=True), chain(pdl=False), strict=True):
        assert_same(got, want)


def test_the_prefix_may_be_updated_in_place() -> None:
    call = Call(variant("add", 4), 4, 3, torch.nan, inputs(8))
    call.values["prefix_out"] = call.values["prefix"]
    call.launch()
    torch.cuda.synchronize()
    assert_same(call.tensor("prefix")[:4], call.prefix())


@WAITING
def test_a_row_that_comes_late_is_waited_for(form: str) -> None:
    call = Call(variant(form, 5), 5, 4, torch.nan, inputs(9))
    box = call.tensor("mailbox")
    came, half = box.clone(), box.shape[2] // 2
    sender = torch.cuda.Stream()

    def send() -> None:
        torch.cuda._sleep(2_000_000)
        for row in range(5):
            box[0, row, :half] = came[0, row, :half]
        box[0, :5, half:] = came[0, :5, half:]

    send()  # its code is loaded now: that waits for a kernel which waits for it
    box.fill_(SENTINEL)
    torch.cuda.synchronize()
    call.launch()
    with torch.cuda.stream(sender):
        send()
    call.check()
    assert int(call.tensor("fail")) == 0


@WAITING
def test_a_wait_in_vain_leaves_a_record_and_goes_on_with_zeros(form: str) -> None:
    call = Call(variant(form, 2), 2, 4, torch.nan, inputs(10), parity=1)
    call.tensor("mailbox")[1, 1, 77] = SENTINEL
    call.launch()
    torch.cuda.synchronize()
    assert int(call.tensor("fail")) == 1
    health = Health()
    health.words = call.tensor("health").cpu()
    record = health.record
    assert record == HealthRecord(
        RANK, Site.O_PROJ, int(call.values["ordinal"]), 3, 0, record.expected, record.seen
    )
    assert record.expected == 4
    assert record.seen == 3
    assert bool(call.tensor("out")[:2].isfinite().all())


@WAITING
def test_nothing_waits_once_a_wait_was_in_vain(form: str) -> None:
    call = Call(variant(form, 64), 64, 4, torch.nan, inputs(11))
    call.tensor("mailbox").fill_(SENTINEL)
    call.tensor("fail").fill_(1)
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    before.record()
    call.launch()
    after.record()
    after.synchronize()
    assert before.elapsed_time(after) < 5  # milliseconds; the deadline is at 50
    assert not call.tensor("health").any()


def test_another_architecture_is_refused() -> None:
    with pytest.raises(LaunchError, match="NO_BINARY"):
        loaded(variant("first", 1, "sm_103a").id)


def test_a_launch_of_no_rows_is_none() -> None:
    kernel = loaded(variant("add", 1).id)
    before = kernel.launches
    kernel.launch([0] * len(kernel.candidate.operands), 0, pdl=False)
    torch.cuda.synchronize()  # nothing was read at address 0
    assert kernel.launches == before


def test_a_launch_with_too_few_values_is_refused() -> None:
    with pytest.raises(LaunchError, match="3 values; want 8"):
        loaded(variant("add", 1).id).launch([0, 0, 0], 1, pdl=False)
