# SPDX-License-Identifier: Apache-2.0
"""How the tests of early starts launch: late, behind a sleeping device, in a graph, one at a time.

Delays are put where an order that does not hold would show: a kernel lets the next launch start,
waits for a while, and writes only then. `copy_before_waiting` is the fault that has to be seen.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
import triton
import triton.language as tl
from torch.utils._python_dispatch import TorchDispatchMode
from triton.language.extra.cuda import globaltimer

from kimi_k3.stock.cuda.early import let_next_start, wait_for_previous

LATE_NS = 200_000
DELAYS_NS = (0, 2_000, 20_000, LATE_NS)
QUEUE_CYCLES = 3_000_000
"""The device sleeps for more than a millisecond while the host enqueues a chain."""
BLOCK = 1024

STREAM_AND_GRAPH = pytest.mark.parametrize("graphed", [False, True], ids=["stream", "graph"])


@triton.jit
def _spin(ns):
    start = globaltimer()
    now = start
    turns = 0
    while (now - start < ns) & (turns < 1000000):  # bounded whatever the timer does
        now = globaltimer()
        turns += 1


@triton.jit
def _copy_late(
    source,
    target,
    n,
    ns,
    WAITS: tl.constexpr,
    TRIGGER_FIRST: tl.constexpr,
    BLOCK: tl.constexpr,
    COMPILED: tl.constexpr,
):
    """Copies words `ns` after it has let the next launch start."""
    if TRIGGER_FIRST:
        let_next_start(COMPILED)
    if WAITS:
        wait_for_previous(COMPILED)
    if not TRIGGER_FIRST:
        let_next_start(COMPILED)
    if COMPILED:
        _spin(ns)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + at, tl.load(source + at, at < n, cache_modifier=".cg"), at < n)


@triton.jit
def _copy_before_waiting(source, target, n, BLOCK: tl.constexpr, COMPILED: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    words = tl.load(source + at, at < n, cache_modifier=".cg")
    wait_for_previous(COMPILED)
    tl.store(target + at, words, at < n)


@triton.jit
def _hold(ns):
    _spin(ns)


def copy_late(
    source: torch.Tensor,
    target: torch.Tensor,
    ns: int = 0,
    *,
    early: bool = False,
    trigger_first: bool = False,
) -> None:
    """Copies int32 words [n] `ns` after the next launch may start.

    Args:
        source: [n] int32.
        target: [n] int32.
        ns: the delay.
        early: whether it starts beside the launch before it, for which it then waits.
        trigger_first: whether the next launch may start before this one has waited.
    """
    assert source.shape == target.shape
    _copy_late[(triton.cdiv(len(source), BLOCK),)](
        source,
        target,
        len(source),
        ns,
        WAITS=early,
        TRIGGER_FIRST=trigger_first,
        BLOCK=BLOCK,
        COMPILED=source.is_cuda,
        launch_pdl=early,
    )


def copy_before_waiting(source: torch.Tensor, target: torch.Tensor) -> None:
    """Starts early, reads int32 words [n], waits, and writes them.

    Right only where the words were written two launches before, or earlier.
    """
    assert source.shape == target.shape
    _copy_before_waiting[(triton.cdiv(len(source), BLOCK),)](
        source,
        target,
        len(source),
        BLOCK=BLOCK,
        COMPILED=source.is_cuda,
        launch_pdl=True,
    )


def hold(programs: int, ns: int) -> None:
    """Programs that do nothing; two of them have all threads of a multiprocessor."""
    _hold[(programs,)](ns, num_warps=32)


def queue(times: int = 1) -> None:
    """Lets the host run ahead, so that launches follow each other at once."""
    torch.cuda._sleep(times * QUEUE_CYCLES)


def captured(launches: Callable[[], None]) -> torch.cuda.CUDAGraph:
    """One graph of the launches, which run once before."""
    launches()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launches()
    return graph


def runner(launches: Callable[[], None], *, graphed: bool) -> Callable[[], None]:
    """Runs the launches one by one behind a sleeping device, or as one graph; compiles them."""
    if graphed:
        return captured(launches).replay
    launches()
    torch.cuda.synchronize()

    def run() -> None:
        queue()
        launches()

    return run


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """The device is waited for after every operation of PyTorch and every Triton launch."""
    launched = 0

    class Synced(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            out = func(*args, **(kwargs or {}))
            torch.cuda.synchronize()
            return out

    def after(_metadata: object) -> None:
        nonlocal launched
        torch.cuda.synchronize()
        launched += 1

    triton.knobs.runtime.launch_exit_hook.add(after)
    try:
        with Synced():
            yield
    finally:
        triton.knobs.runtime.launch_exit_hook.remove(after)
    assert launched, "no launch was seen, so none was waited for"
