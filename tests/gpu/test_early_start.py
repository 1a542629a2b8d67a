# SPDX-License-Identifier: Apache-2.0
"""The rules of launches that start early (`kimi_k3.stock.cuda.early`), and that a breach shows.

First faults of kernels that only copy: without them nothing would say that launches do start early
on this machine, out of a graph too. Then each launch of the chain behind a late one.
"""

import pytest
import torch

from tests.gpu.early_chain import CASES, CHAINS, Chain
from tests.gpu.launching import (
    DELAYS_NS,
    LATE_NS,
    STREAM_AND_GRAPH,
    copy_before_waiting,
    copy_late,
    runner,
)
from tests.gpu.packed_oracle import DEVICE, ON_GPU

pytestmark = pytest.mark.skipif(not ON_GPU, reason="nothing runs side by side in the interpreter")
STALE = -1


def words() -> torch.Tensor:
    return torch.arange(4096, dtype=torch.int32, device=DEVICE)


@STREAM_AND_GRAPH
@pytest.mark.parametrize("waits", [False, True])
def test_a_read_before_the_wait_finds_what_is_stale(*, waits: bool, graphed: bool) -> None:
    fresh = words()
    memory, out = torch.empty_like(fresh), torch.empty_like(fresh)

    def launches() -> None:
        copy_late(fresh, memory, LATE_NS)
        if waits:
            copy_late(memory, out, early=True)
        else:
            copy_before_waiting(memory, out)

    run = runner(launches, graphed=graphed)
    memory.fill_(STALE)
    run()
    torch.cuda.synchronize()
    assert torch.equal(out, fresh if waits else torch.full_like(out, STALE))


@STREAM_AND_GRAPH
@pytest.mark.parametrize(
    ("early", "trigger_first", "stale"),
    [(True, True, True), (True, False, False), (False, True, False)],
    ids=["early and triggers first", "early and waits first", "never early and triggers first"],
)
def test_a_read_two_launches_on_is_stale_where_the_one_between_lets_go_before_it_waits(
    *, early: bool, trigger_first: bool, stale: bool, graphed: bool
) -> None:
    """What `down_sum` relies on behind `gate_up`, and why `route` may let go at once."""
    fresh = words()
    memory, out, other = (torch.empty_like(fresh) for _ in range(3))

    def launches() -> None:
        copy_late(fresh, memory, LATE_NS)
        copy_late(fresh, other, early=early, trigger_first=trigger_first)
        copy_before_waiting(memory, out)

    run = runner(launches, graphed=graphed)
    memory.fill_(STALE)
    run()
    torch.cuda.synchronize()
    assert torch.equal(out, torch.full_like(out, STALE) if stale else fresh)


@pytest.fixture(scope="module", params=CHAINS, ids=str)
def chain(request: pytest.FixtureRequest) -> Chain:
    return Chain.random(*request.param)


@STREAM_AND_GRAPH
@pytest.mark.parametrize("ns", DELAYS_NS)
def test_both_products_wait_for_a_late_routing(chain: Chain, ns: int, *, graphed: bool) -> None:
    b = chain.buffers()
    routed = chain.right[0].routed.clone()

    def launches() -> None:
        copy_late(routed, b.routed, ns)
        chain.experts(b)

    run = runner(launches, graphed=graphed)
    for case, want in enumerate(chain.right):
        chain.spoil(b, case + 1)
        routed.copy_(want.routed)
        run()
        chain.check(b, case)


@STREAM_AND_GRAPH
@pytest.mark.parametrize("ns", DELAYS_NS)
def test_the_sum_waits_for_late_hidden_rows_behind_a_late_routing(
    chain: Chain, ns: int, *, graphed: bool
) -> None:
    b, first = chain.buffers(), chain.right[0]
    routed, hidden = first.routed.clone(), first.hidden_words.clone()

    def launches() -> None:
        copy_late(routed, b.routed, LATE_NS - ns)
        copy_late(hidden, b.hidden_words, ns, early=True)
        chain.down_sum(b)

    run = runner(launches, graphed=graphed)
    for case, want in enumerate(chain.right):
        chain.spoil(b, case + 1)
        routed.copy_(want.routed)
        hidden.copy_(want.hidden_words)
        run()
        chain.check(b, case)


@STREAM_AND_GRAPH
@pytest.mark.parametrize("ns", DELAYS_NS)
def test_routing_waits_for_a_late_product(chain: Chain, ns: int, *, graphed: bool) -> None:
    b, front, source = chain.buffers(), *chain.fronts[:2].clone()
    target_words, source_words = (t.view(torch.int32).view(-1) for t in (front, source))

    def launches() -> None:
        copy_late(source_words, target_words, ns)
        chain.run(front, b)

    run = runner(launches, graphed=graphed)
    for case in range(CASES):
        chain.spoil(b, case + 1)
        front.copy_(chain.fronts[case - 1])
        source.copy_(chain.fronts[case])
        run()
        chain.check(b, case)


@STREAM_AND_GRAPH
def test_what_follows_may_overwrite_all_that_a_chain_has_read(
    chain: Chain, *, graphed: bool
) -> None:
    b, front = chain.buffers(), chain.fronts[0].clone()
    out, junk = torch.empty_like(b.partial_words), torch.zeros_like(b.memory)

    def launches() -> None:
        chain.run(front, b)
        copy_late(b.partial_words, out, early=True)
        copy_late(junk, b.memory, early=True)

    run = runner(launches, graphed=graphed)
    for case, want in enumerate(chain.right):
        chain.spoil(b, case + 1)
        front.copy_(chain.fronts[case])
        junk.copy_(chain.right[case - 1].memory)
        run()
        torch.cuda.synchronize()
        assert torch.equal(out, want.partial_words)
