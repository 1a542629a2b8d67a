# SPDX-License-Identifier: Apache-2.0
"""Chain after chain in the same memory: layers, replays, two graphs at once, other work beside.

Launches that start early leave, bit for bit, what launches one at a time leave.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest
import torch

from tests.gpu.early_chain import CASES, CHAINS, Buffers, Chain
from tests.gpu.launching import captured, copy_late, hold, one_at_a_time, queue
from tests.gpu.packed_oracle import DEVICE, ON_GPU, generator

pytestmark = pytest.mark.skipif(not ON_GPU, reason="nothing runs side by side in the interpreter")


@pytest.fixture(scope="module", params=CHAINS, ids=str)
def chain(request: pytest.FixtureRequest) -> Chain:
    return Chain.random(*request.param)


def layers(chain: Chain, b: Buffers, outs: torch.Tensor, *, early: bool) -> None:
    """A chain for each case, in the same memory; with `early` every launch starts early."""
    for case, want in enumerate(chain.right):
        if early:
            copy_late(want.routed, b.routed, 2_000 * (case % 3), early=True)
            chain.experts(b)
            copy_late(b.partial_words, outs[case], early=True)
        else:
            chain.run(chain.fronts[case], b)
            outs[case].copy_(b.partial_words)


@contextmanager
def beside(kind: str) -> Iterator[Callable[[], None]]:
    """What to call now and then to keep another stream busy for a few milliseconds."""
    stream = torch.cuda.Stream()
    big = torch.empty(2, 1 << 28, dtype=torch.int32, device=DEVICE) if kind == "copies" else None
    multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count

    def busy() -> None:
        with torch.cuda.stream(stream):
            for turn in range(8):
                if big is not None:
                    big[0].copy_(big[1])
                elif kind == "programs":  # all threads but one program's, then half of them
                    hold((2 * multiprocessors - 1, multiprocessors)[turn % 2], 50_000)

    yield busy
    torch.cuda.synchronize()


@pytest.mark.parametrize("kind", ["idle", "copies", "programs"])
@pytest.mark.parametrize("early", [False, True])
def test_layers_in_the_same_memory_stay_apart_beside_other_work(
    chain: Chain, kind: str, *, early: bool
) -> None:
    b, want = chain.buffers(), chain.partials
    outs = torch.empty_like(want)
    graph = captured(partial(layers, chain, b, outs, early=early))
    with beside(kind) as busy:
        busy()
        torch.cuda.synchronize()
        for turn in range(30):
            busy()
            chain.spoil(b, turn)
            outs.fill_(-1)
            graph.replay()
            torch.cuda.current_stream().synchronize()
            assert torch.equal(outs, want)


def test_replays_back_to_back_read_what_was_written_right_before_each(chain: Chain) -> None:
    b, front, turns = chain.buffers(), chain.fronts[0].clone(), 120
    graph = captured(partial(chain.run, front, b))
    outs = torch.empty(turns, len(b.partial_words), dtype=torch.int32, device=DEVICE)
    queue(10)
    for turn in range(turns):
        if turn % 2:  # every other replay follows the last one as closely as it can
            chain.spoil(b, turn + 1)
        copy_late(
            chain.fronts[turn % CASES].view(torch.int32).view(-1), front.view(torch.int32).view(-1)
        )
        graph.replay()
        outs[turn].copy_(b.partial_words)
    torch.cuda.synchronize()
    assert torch.equal(outs, chain.partials.repeat(turns // CASES, 1))


def test_two_graphs_in_flight_leave_each_other_alone(chain: Chain) -> None:
    turns, streams = 40, [torch.cuda.Stream() for _ in range(2)]
    own, fronts = [chain.buffers() for _ in streams], chain.fronts[:2].clone()
    graphs = [captured(partial(chain.run, front, b)) for front, b in zip(fronts, own, strict=True)]
    cases = [[(turn + 3 * i) % CASES for turn in range(turns)] for i in range(2)]
    outs = torch.empty(2, turns, len(own[0].partial_words), dtype=torch.int32, device=DEVICE)
    torch.cuda.synchronize()
    for turn in range(turns):
        for i, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                if not turn:
                    queue(10)
                chain.spoil(own[i], turn + 2)
                fronts[i].copy_(chain.fronts[cases[i][turn]])
                graphs[i].replay()
                outs[i, turn].copy_(own[i].partial_words)
    torch.cuda.synchronize()
    assert torch.equal(outs, torch.stack([chain.partials[c] for c in cases]))


def test_few_and_many_rows_in_turn_do_not_share_freed_memory_too_soon(chain: Chain) -> None:
    """The allocator gives freed memory to the next step, whose launches may start early."""
    g, width = generator(2), chain.shape.experts + chain.shape.latent
    sizes = (1, 64, 1, 1, 2, 1, 17, 1, 1, 64)
    fronts = [torch.randn(rows, width, generator=g, device=DEVICE) for rows in sizes]
    with one_at_a_time():
        want = [chain.step(front).clone() for front in fronts]
    got = [torch.empty_like(sums) for sums in want]
    for _ in range(15):
        for out in got:
            out.fill_(torch.nan)
        queue()
        for front, out in zip(fronts, got, strict=True):
            out.copy_(chain.step(front))
        torch.cuda.synchronize()
        assert all(map(torch.equal, got, want))
