# SPDX-License-Identifier: Apache-2.0
"""Captured steps of few rows of the whole mini model, in which launches start early.

Around the chain of each layer lie the side stream of the shared experts, the sums, and the products
of the next layer.
"""

from dataclasses import replace

import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("nothing runs side by side in the interpreter", allow_module_level=True)

from kimi_k3.config import mini
from kimi_k3.step import Group, Kind, Step
from kimi_k3.stock.cuda.graphs import GraphedModel
from tests.gpu.launching import one_at_a_time, queue
from tests.gpu.mini_sides import COLUMNS, GPU, PAGES_EACH, every, fused, step_of, untied

CONTEXT = 4096


def steps_of(requests: int, count: int, vocab: int) -> list[Step]:
    """Requests go on from their 70th token, one row each, laid out as it is captured."""
    own, accepted = [(Kind.WINDOW, list(range(requests)), 1)], [1] * requests
    steps = [step_of(own, [70 + turn] * requests, accepted, turn, vocab) for turn in range(count)]
    return [replace(step, shape=replace(step.shape, context=CONTEXT)) for step in steps]


@pytest.mark.parametrize("requests", [1, 2])
def test_captured_steps_are_those_that_run_one_launch_at_a_time(requests: int) -> None:
    config = mini()
    weights, steps = untied(config), steps_of(requests, 40, config.vocab_size)
    slow, fast, graphed = (fused(config, weights, fp8=False) for _ in range(3))
    for side in (slow, fast, graphed):
        for state in every(side.caches):
            state.zero_()
    captured = GraphedModel(graphed.model, COLUMNS, PAGES_EACH, CONTEXT)
    captured.capture([Group(Kind.WINDOW, requests, 1)], GPU)
    with one_at_a_time():
        want = torch.stack([slow.model.step(step).logits for step in steps])
    assert bool(want.isfinite().all())
    for backend in (fast.model, captured):
        got = torch.full_like(want, torch.nan)
        queue(10)
        for step, out in zip(steps, got, strict=True):
            out.copy_(backend.step(step).logits)
        torch.cuda.synchronize()
        assert torch.equal(got, want)
    for side in (fast, graphed):
        pairs = zip(every(side.caches), every(slow.caches), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)
