# SPDX-License-Identifier: Apache-2.0
"""A lane that waits for its own copies reads only those: the layouts of the compiled kernels."""

import re
from math import prod

import pytest
import torch
import triton

from kimi_k3.stock.cuda import expert_copies
from kimi_k3.stock.cuda.expert_copies import COMPARED, lanes_read_their_copies
from kimi_k3.stock.cuda.expert_kernels import gate_up_kernel
from kimi_k3.stock.cuda.expert_tiles import ONE_WAVE
from tests.gpu.packed_oracle import ON_GPU, Experts
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


def test_nothing_is_copied_where_layouts_were_not_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = (triton.__version__, (9, 0))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
    for compared, answer in (({ours}, True), ({("0.0.1", (9, 0))}, False), (set(), False)):
        monkeypatch.setattr(expert_copies, "COMPARED", compared)
        lanes_read_their_copies.cache_clear()
        assert lanes_read_their_copies(torch.device("cuda")) is answer
        assert not lanes_read_their_copies(torch.device("cpu"))
    lanes_read_their_copies.cache_clear()


@pytest.mark.skipif(not ON_GPU, reason="only a GPU's kernels have layouts")
def test_every_lane_reads_only_words_that_it_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails on a Triton or a GPU that `COMPARED` lacks, too: then it says what to add."""
    here = (triton.__version__, torch.cuda.get_device_capability())
    monkeypatch.setattr(expert_copies, "COMPARED", {here})
    lanes_read_their_copies.cache_clear()
    for latent in (512, 1536, 3584):
        shape = Experts(width=64, live=32, latent=latent, experts=16, k=4)
        for rows, wide in ((1, False), (2, False), (1, True), (2, True)):
            check_by_pair(shape, (COPIED, ONE_WAVE.down[0]), [1] * rows, wide=wide)
    lanes_read_their_copies.cache_clear()
    compiled = gate_up_kernel.device_caches[torch.cuda.current_device()][0].values()
    texts = [kernel.asm["ttgir"] for kernel in compiled if "cp.async.cg" in kernel.asm["ttgir"]]
    assert len(texts) >= 6  # three depths, wide and not
    for text in texts:
        copies, reads = set(COPY.findall(text)), set(READ.findall(text))
        assert copies, text
        assert reads, text
        for copy in (held(text, name, WORDS) for name in copies):
            for read in (held(text, name, WORDS) for name in reads):
                assert all(read[thread] <= copy[thread] for thread in read)
    assert here in COMPARED, f"layouts are equal: add {here} to COMPARED"
