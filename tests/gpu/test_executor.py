# SPDX-License-Identifier: Apache-2.0
"""`latency_specialized` over reference providers on a GPU, the stock path's steps in between."""

from dataclasses import dataclass

import torch

from kimi_k3.backends import specialized_rounding
from kimi_k3.config import mini
from kimi_k3.decode.comm.loopback import LoopbackCommunicator
from kimi_k3.decode.exchanges import exchanges_of
from kimi_k3.decode.executor import Executor
from kimi_k3.decode.plan import Fallback, Plan, Reason
from kimi_k3.decode.providers import reference_providers
from kimi_k3.packed import PackedModel
from kimi_k3.reference.context import Context
from kimi_k3.rounding import Rounding, exact, stock
from kimi_k3.step import Kind, StepShape
from tests.gpu.mini_sides import GPU, Side, every, fused, untied
from tests.gpu.test_stock_model import follow, live, off, plain, program

ROWS = 64


@dataclass
class EveryOther:
    """Plans every second step of windows."""

    steps: int = 0

    def plan(self, shape: StepShape) -> Plan | Fallback:
        group, self.steps = shape.groups[0], self.steps + 1
        if len(shape.groups) > 1 or group.kind is Kind.PREFILL:
            return Fallback(Reason.PREFILL)
        if self.steps % 2:
            return Fallback(Reason.UNPREPARED)
        return Plan(group.requests, group.rows)


def executor_over(weights: PackedModel, under: Side, rounding: Rounding) -> Executor:
    config = mini()
    comm = LoopbackCommunicator(exchanges_of(config, 1, 1, ROWS, rounding.compute), device=GPU)
    operators = reference_providers(Context(config, rounding), weights, comm)
    return Executor(
        config,
        weights,
        under.caches,
        EveryOther(),  # type: ignore[arg-type]
        operators,
        comm,
        under.model,
        (1, 4),
        rounding.compute,
    )


def test_with_the_stock_rounding_the_bits_are_those_of_plain_pytorch_alone() -> None:
    weights = untied(mini())
    under, alone = (plain(mini(), weights, stock(), fp8=False) for _ in range(2))
    executor = executor_over(weights, under, stock())
    for step in program(mini().vocab_size):
        got, want = executor.step(step), alone.model.step(step)
        assert torch.equal(live(step, got), live(step, want))
        for a, b in zip(every(under.caches), every(alone.caches), strict=True):
            assert torch.equal(a, b)
    assert executor.providers() == ("reference", "stock")
    assert executor.steps()["planned"] >= 2


def test_planned_steps_and_fused_stock_steps_share_their_caches() -> None:
    weights = untied(mini())
    under = fused(mini(), weights, fp8=False)
    sides = (
        plain(mini(), weights, stock(), fp8=False),
        plain(mini(), weights, exact(torch.float64), fp8=False),
    )
    executor = executor_over(weights, under, specialized_rounding("bf16", 1))
    for step in program(mini().vocab_size):
        got, same, true = executor.step(step), *(side.model.step(step) for side in sides)
        distance = off(live(step, got), live(step, true))
        assert distance <= 2 * off(live(step, same), live(step, true)) + 2**-7, step.shape
        for side in sides:
            follow(side.caches, under.caches)
