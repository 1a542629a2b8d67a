# SPDX-License-Identifier: Apache-2.0
"""The whole stock path on a GPU against the same path in plain PyTorch with the same rounding.

Both round at the same points, so they differ by the order of sums and by the last bits of exp and
tanh: a few BF16 steps per operation. `near` allows the distance that the plain path itself has from
the exact model, which is made of as many roundings.

One configuration: the first prefill of each tunes fla-core's chunked kernels for a minute.
"""

from dataclasses import replace

import pytest
import torch

from kimi_k3.config import K3Config, mini
from kimi_k3.packed import PackedModel
from kimi_k3.reference.context import Context
from kimi_k3.reference.state import Caches, KdaState, KvCache
from kimi_k3.rounding import Rounding, exact, stock
from kimi_k3.step import Group, Kind, Step, StepOutput
from kimi_k3.stock.cuda.graphs import GraphedModel
from kimi_k3.stock.model import StockModel
from kimi_k3.stock.torch_ops import TorchOps
from tests.gpu.mini_sides import (
    COLUMNS,
    GPU,
    PAGES_EACH,
    Side,
    caches_for,
    every,
    fused,
    step_of,
    untied,
)


def plain(config: K3Config, weights: PackedModel, rounding: Rounding, *, fp8: bool) -> Side:
    caches = caches_for(config, rounding, fp8=fp8)
    ops = TorchOps(Context(config, rounding), weights)
    return Side(StockModel(config, weights, caches, ops, (1, 4)), caches)


def program(vocab: int) -> list[Step]:
    """Prefills, decoding, verify windows, a continued prompt and a mixture of them."""
    p, w = Kind.PREFILL, Kind.WINDOW
    return [
        step_of([(p, [0], 70), (p, [1, 2], 5)], [70, 5, 5], [1, 1, 1], 1, vocab),
        step_of([(w, [0, 1, 2], 1)], [71, 6, 6], [1, 1, 1], 2, vocab, null=1),
        step_of([(w, [0, 1, 2], 4)], [75, 10, 10], [1, 1, 1], 3, vocab),
        step_of([(w, [0, 1, 2], 4)], [77, 13, 14], [2, 3, 4], 4, vocab, null=2),
        step_of([(w, [1], 1), (w, [2], 2), (p, [0], 20)], [14, 13, 96], [4, 1, 3], 5, vocab),
        step_of([(w, [0, 1, 2], 1)], [97, 15, 14], [1, 1, 1], 6, vocab),
    ]


def off(a: torch.Tensor, b: torch.Tensor) -> float:
    """Relative L2 distance."""
    return float((a.double() - b.double()).norm() / b.double().norm())


def live(step: Step, out: StepOutput) -> torch.Tensor:
    """The logits of rows that are not padding."""
    keep = []
    for part in step.parts():
        wanted = part.group.rows if part.group.kind is Kind.WINDOW else 1
        keep.extend((part.lengths > 0).repeat_interleave(wanted).tolist())
    return out.logits[torch.tensor(keep, device=GPU)]


@pytest.mark.parametrize("fp8", [False, True])
def test_every_step_is_as_near_to_the_exact_model_as_plain_pytorch_is(fp8: bool) -> None:
    config = mini()
    weights = untied(config)
    sides = (
        fused(config, weights, fp8=fp8),
        plain(config, weights, stock(), fp8=fp8),
        plain(config, weights, exact(torch.float64), fp8=fp8),
    )
    for step in program(config.vocab_size):
        got, same, true = (side.model.step(step) for side in sides)
        a, b = off(live(step, got), live(step, true)), off(live(step, same), live(step, true))
        assert bool(torch.isfinite(live(step, got)).all())
        assert a <= 2 * b + 2**-7, (step.shape, a, b)
        # Both start the next step from the same state, so that errors do not add up.
        for side in sides[1:]:
            follow(side.caches, sides[0].caches)


def follow(target: Caches, source: Caches) -> None:
    for a, b in zip(target.layers, source.layers, strict=True):
        if isinstance(a, KdaState) and isinstance(b, KdaState):
            a.recurrent.copy_(b.recurrent)
            a.conv.copy_(b.conv)
        elif isinstance(a, KvCache) and isinstance(b, KvCache):
            a.pages.copy_(b.pages.to(torch.float32).to(a.pages.dtype))


def test_a_step_writes_the_states_and_pages_that_it_should_and_no_others() -> None:
    config = mini()
    weights = untied(config)
    ours = fused(config, weights, fp8=False)
    same, true = (
        plain(config, weights, stock(), fp8=False),
        plain(config, weights, exact(torch.float64), fp8=False),
    )
    for step in program(config.vocab_size):
        before = [t.clone() for t in every(ours.caches)]
        for side in (ours, same, true):
            side.model.step(step)
        sides = (every(side.caches) for side in (ours, same, true))
        for a, b, c, old in zip(*sides, before, strict=True):
            wrote, wanted = (a != old).flatten(1).any(1), (b != old).flatten(1).any(1)
            assert torch.equal(wrote, wanted)
            if bool(wanted.any()):
                assert off(a[wanted], c[wanted]) <= 2 * off(b[wanted], c[wanted]) + 2**-7
        for side in (same, true):
            follow(side.caches, ours.caches)


def test_a_captured_step_replays_what_the_same_step_computes_uncaptured() -> None:
    config = mini()
    weights = untied(config)
    eager, captured = fused(config, weights, fp8=False), fused(config, weights, fp8=False)
    graphed = GraphedModel(captured.model, COLUMNS, PAGES_EACH, 4096)
    graphed.capture([Group(Kind.WINDOW, 4, 1), Group(Kind.WINDOW, 3, 4)], GPU)
    assert all(
        torch.equal(a, b) for a, b in zip(every(captured.caches), every(eager.caches), strict=True)
    ), "capturing wrote state"
    for step in program(config.vocab_size):
        laid_out = replace(step, shape=replace(step.shape, context=4096))
        want, got = eager.model.step(laid_out), graphed.step(laid_out)
        assert torch.equal(live(step, got), live(step, want))
        for a, b in zip(every(captured.caches), every(eager.caches), strict=True):
            assert torch.equal(a, b)


def test_the_same_step_gives_the_same_bits_again() -> None:
    config = mini()
    weights = untied(config)
    first = [fused(config, weights, fp8=False).model.step(s).logits for s in program(512)[:1]]
    for _ in range(5):
        again = [fused(config, weights, fp8=False).model.step(s).logits for s in program(512)[:1]]
        assert torch.equal(first[0], again[0])
