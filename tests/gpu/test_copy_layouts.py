# SPDX-License-Identifier: Apache-2.0
"""A lane that waits for its own copies reads only those: the layouts of the compiled kernels."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod

import pytest
import torch
import triton

from kimi_k3.stock.cuda import expert_copies, experts
from kimi_k3.stock.cuda.expert_copies import COMPARED, lanes_read_their_copies
from kimi_k3.stock.cuda.expert_kernels import gate_up_kernel
from kimi_k3.stock.cuda.expert_plan import ExpertPlan
from kimi_k3.stock.cuda.expert_tiles import ONE_WAVE, PAIR_TOKENS
from tests.gpu.packed_oracle import ON_GPU, TP16, Experts, normal, random_experts, routing
from tests.gpu.test_stock_experts import COPIED, check_by_pair
from tests.gpu.triton_layouts import held

WORDS = (2, 4, 8, 4)
"""Shape of the addresses of an iteration's weights."""
TENSOR = r"tensor<2x4x8x4xi32, #(\w+)>"
COPY = re.compile(rf'inline_asm "cp\.async\.cg.*?{TENSOR}')
READ = re.compile(rf'inline_asm "ld\.shared\.v4\.b32.*?: {TENSOR}')
LAYOUTS = """
#blocked1 = #ttg.blocked<{sizePerThread = [1, 1, 1, 1], threadsPerWarp = [1, 1, 8, 4], \
warpsPerCTA = [1, 4, 1, 1], order = [3, 2, 1, 0]}>
#linear5 = #ttg.linear<{register = [[1, 0, 0, 0]], lane = [[0, 0, 0, 1], [0, 0, 0, 2], \
[0, 0, 1, 0], [0, 0, 2, 0], [0, 0, 4, 0]], warp = [[0, 1, 0, 0], [0, 2, 0, 0]], block = []}>
#linear6 = #ttg.linear<{register = [[1, 0, 0, 0]], lane = [[0, 0, 0, 2], [0, 0, 0, 1], \
[0, 0, 1, 0], [0, 0, 2, 0], [0, 0, 4, 0]], warp = [[0, 1, 0, 0], [0, 2, 0, 0]], block = []}>
#linear7 = #ttg.linear<{register = [[1, 0, 0, 0]], lane = [[0, 0, 0, 1], [0, 0, 0, 2], \
[0, 0, 1, 0], [0, 0, 2, 0], [0, 0, 4, 0]], warp = [[0, 2, 0, 0], [0, 1, 0, 0]], block = []}>
"""
"""The first two as Triton 3.6.0 wrote them for the copies and the reads."""


def test_layouts_compare_by_who_holds_what_and_not_by_name() -> None:
    blocked, linear, lanes, warps = (
        held(LAYOUTS, name, WORDS) for name in ("blocked1", "linear5", "linear6", "linear7")
    )
    assert blocked == linear
    assert len(blocked) == 128
    assert sum(map(len, blocked.values())) == prod(WORDS) == len(set().union(*blocked.values()))
    assert blocked != lanes
    assert blocked != warps
    wide = held(LAYOUTS, "blocked1", (1, 8, 8, 4))  # twice as many slots, half as many rows
    assert wide[0, 0] == {(0, 0, 0, 0), (0, 4, 0, 0)}


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bool], None]]:
    """Says whether layouts were compared for this machine, whatever it is."""

    def compared(answer: bool) -> None:
        capability = torch.cuda.get_device_capability() if ON_GPU else (9, 0)
        pairs = {(triton.__version__, capability)} if answer else set()
        monkeypatch.setattr(expert_copies, "COMPARED", pairs)
        lanes_read_their_copies.cache_clear()

    yield compared
    monkeypatch.undo()
    lanes_read_their_copies.cache_clear()


@pytest.mark.parametrize(
    ("pairs", "answer"),
    [
        ({(triton.__version__, (9, 0))}, True),
        ({("0.0.1", (9, 0))}, False),
        ({(triton.__version__, (8, 0))}, False),
        (set(), False),
    ],
)
@pytest.mark.usefixtures("gate")
def test_a_version_is_compared_for_one_architecture(
    monkeypatch: pytest.MonkeyPatch, pairs: set[object], answer: bool
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
    monkeypatch.setattr(expert_copies, "COMPARED", pairs)
    lanes_read_their_copies.cache_clear()
    assert lanes_read_their_copies(torch.device("cuda")) is answer
    assert not lanes_read_their_copies(torch.device("cpu"))


class Recorder:
    """Stands for the kernel and keeps what it would be compiled for."""

    def __init__(self) -> None:
        self.settings: dict[str, object] = {}

    def __getitem__(self, grid: object) -> Callable[..., None]:
        return lambda *_, **settings: self.settings.update(settings)


@pytest.mark.parametrize(
    ("may", "latent", "shifted", "copies"),
    [
        (True, 512, "", True),
        (False, 512, "", False),
        (True, 64, "", False),
        (True, 512, "z", False),
        (True, 512, "w13_packed", False),
        (True, 512, "w13_scale", False),
    ],
)
def test_operands_are_copied_where_they_may_and_can_be(
    monkeypatch: pytest.MonkeyPatch, may: bool, latent: int, shifted: str, copies: bool
) -> None:
    monkeypatch.setattr(experts, "lanes_read_their_copies", lambda _: may)
    monkeypatch.setattr(experts, "gate_up_kernel", recorder := Recorder())
    shape = Experts(width=64, live=32, latent=latent, experts=16, k=4)
    w, z, ids = random_experts(shape, seed=8), normal(7, 1, latent), routing("random", 1, shape, 9)
    if shifted == "z":
        z = off_by(z, 4)
    elif shifted:
        w = replace(w, **{shifted: off_by(getattr(w, shifted), 4)})
    hidden, plan = z.new_empty(4, 64), ExpertPlan.by_pair(ids, PAIR_TOKENS)
    tile, given = COPIED, {"live": 32, "beta": 4.0, "linear_beta": None, "wide": False}
    experts.gate_up(z, w, plan, hidden, tile, **given)
    assert recorder.settings["COPIES"] is copies
    assert recorder.settings["maxnreg"] == (tile.copied_registers if copies else tile.registers)


def off_by(t: torch.Tensor, count: int) -> torch.Tensor:
    """The same values, some elements into another allocation."""
    return torch.cat([t.new_zeros(count), t.flatten()])[count:].view(t.shape)


@pytest.mark.skipif(not ON_GPU, reason="only a GPU's kernels have layouts")
def test_every_lane_reads_only_words_that_it_copied(gate: Callable[[bool], None]) -> None:
    """Fails on a Triton or a GPU that `COMPARED` lacks, too: then it says what to add."""
    known = COMPARED
    gate(True)
    depths = range(512, 3584 + 1, 512)
    shapes = [Experts(width=64, live=32, latent=depth, experts=16, k=4) for depth in depths]
    for shape in (*shapes, TP16):
        for rows, wide in ((1, False), (2, False), (1, True), (2, True)):
            check_by_pair(shape, (COPIED, ONE_WAVE.down[0]), [1] * rows, wide=wide)
    compiled = gate_up_kernel.device_caches[torch.cuda.current_device()][0].values()
    texts = [kernel.asm["ttgir"] for kernel in compiled if "cp.async.cg" in kernel.asm["ttgir"]]
    assert len(texts) >= 2 * len(depths)  # wide and not
    for text in texts:
        copies, reads = _layouts(text, COPY, "cp.async.cg"), _layouts(text, READ, "ld.shared.v4")
        for copy in (held(text, name, WORDS) for name in copies):
            for read in (held(text, name, WORDS) for name in reads):
                assert all(read[thread] <= copy[thread] for thread in read)
    here = triton.__version__, torch.cuda.get_device_capability()
    assert here in known, f"layouts are equal: add {here} to COMPARED"


def _layouts(text: str, line: re.Pattern[str], asm: str) -> set[str]:
    """The layouts of all lines with an instruction of an iteration's weights, and of no fewer."""
    found = line.findall(text)
    lines = [one for one in text.splitlines() if asm in one and "tensor<2x4x8x4xi32" in one]
    assert len(found) == len(lines) > 0
    return set(found)
