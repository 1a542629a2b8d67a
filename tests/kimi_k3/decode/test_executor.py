# SPDX-License-Identifier: Apache-2.0
"""Planned steps and steps that fall back, in any order, on the same caches."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings

from fasttrack.errors import FasttrackError
from kimi_k3.assembly import shard
from kimi_k3.backends import RankModel, Setup, specialized_rounding
from kimi_k3.config import tiny
from kimi_k3.decode.comm.local import LocalCommunicator, LocalGroup
from kimi_k3.decode.exchanges import exchanges_of
from kimi_k3.decode.executor import Executor
from kimi_k3.decode.providers import Provider
from kimi_k3.engine.options import EngineConfig
from kimi_k3.packed import PackedKda, PackedModel, pack
from kimi_k3.ranks import Communicator, SingleRank, run_ranks
from kimi_k3.reference.state import FP8, Caches, KvCache, allocate
from kimi_k3.rounding import Rounding, exact, stock
from kimi_k3.step import Backend, StepOutput
from kimi_k3.weights import ModelWeights
from tests.kimi_k3.decode.server import (
    DRAFT,
    SHAPE,
    Choice,
    ChosenPlan,
    Schedule,
    choices,
    poisoned,
    same_bits,
    tensors,
)

AUX = (0, 3, 5)


@dataclass(frozen=True)
class Seen:
    """What one rank holds after a schedule, and what its steps returned."""

    outputs: list[StepOutput]
    caches: Caches
    backend: Backend
    weights: PackedModel


def rank_model(
    weights: ModelWeights,
    comm: Communicator,
    tp: int,
    dcp: int,
    stock_rounding: Rounding,
    planned: Rounding,
    fp8: bool,
) -> RankModel:
    setup = Setup(
        tiny(),
        EngineConfig(dcp=dcp),
        tp,
        fp8_cache=fp8,
        rounding=stock_rounding,
        planned_rounding=planned,
    )
    own = shard(weights, tiny(), tp, comm.rank)
    form = KvCache(torch.empty(0, dtype=FP8), q_scale=0.5, k_scale=0.25) if fp8 else None
    caches = allocate(tiny(), own, stock_rounding, SHAPE, form)
    poisoned(caches)
    return RankModel(setup, pack(tiny(), own), caches)


def all_stock(
    weights: ModelWeights,
    chosen: list[Choice],
    tp: int,
    dcp: int,
    rounding: Rounding,
    fp8: bool = False,
) -> list[Seen]:
    def one_rank(comm: Communicator) -> Seen:
        model = rank_model(weights, comm, tp, dcp, rounding, rounding, fp8)
        backend = replace(model.auto(comm), aux_layers=AUX)  # type: ignore[type-var]
        outputs = [backend.step(step) for _, step in Schedule(tiny().vocab_size).steps(chosen)]
        return Seen(outputs, model.caches, backend, model.weights)

    return run_ranks(tp, one_rank)


def interleaved(
    weights: ModelWeights,
    chosen: list[Choice],
    tp: int,
    dcp: int,
    rounding: Rounding,
    planned: Rounding,
    fp8: bool = False,
    change: Callable[[Executor], Executor] = lambda executor: executor,
) -> list[Seen]:
    def one_rank(comm: LocalCommunicator) -> Seen:
        model = rank_model(weights, comm, tp, dcp, rounding, planned, fp8)
        planner = ChosenPlan()
        built = change(model.specialized(comm, planner))  # type: ignore[arg-type]
        backend = replace(
            built,
            aux_layers=AUX,
            stock=replace(built.stock, aux_layers=AUX),  # type: ignore[type-var]
        )
        outputs = []
        for choice, step in Schedule(tiny().vocab_size).steps(chosen):
            planner.planned = choice.planned
            outputs.append(backend.step(step))
        return Seen(outputs, model.caches, backend, model.weights)

    exchanges = exchanges_of(tiny(), tp, dcp, 64, planned.compute)
    ended = LocalGroup(exchanges).run(one_rank)
    assert [one.failure for one in ended] == [None] * tp
    return [one.value for one in ended if one.value is not None]


def assert_same(a: list[Seen], b: list[Seen]) -> None:
    """Outputs, states and caches of all ranks, bit for bit."""
    for one, other in zip(a, b, strict=True):
        for x, y in zip(one.outputs, other.outputs, strict=True):
            assert same_bits(x.hidden, y.hidden)
            assert same_bits(x.logits, y.logits)
            assert all(same_bits(p, q) for p, q in zip(x.aux, y.aux, strict=True))
        for x, y in zip(tensors(one.caches), tensors(other.caches), strict=True):
            assert same_bits(x, y)


@settings(max_examples=15, deadline=None)
@given(chosen=choices())
def test_with_the_stock_rounding_any_interleaving_is_bit_equal_to_an_all_stock_run(
    chosen: list[Choice], tiny_weights: ModelWeights
) -> None:
    r = stock()
    got = interleaved(tiny_weights, chosen, 1, 1, r, r)
    assert_same(got, all_stock(tiny_weights, chosen, 1, 1, r))


@settings(max_examples=4, deadline=None)
@given(chosen=choices())
@pytest.mark.parametrize(("dcp", "fp8"), [(1, True), (2, False)])
def test_so_it_is_on_two_ranks_and_with_an_fp8_cache(
    chosen: list[Choice], dcp: int, fp8: bool, tiny_weights: ModelWeights
) -> None:
    r = stock()
    got = interleaved(tiny_weights, chosen, 2, dcp, r, r, fp8)
    assert_same(got, all_stock(tiny_weights, chosen, 2, dcp, r, fp8))


SOME = [
    Choice((0, 1, 2), 4, prefill=False, padding=1, planned=True, seed=2),
    Choice((0, 2), 1, prefill=False, padding=0, planned=False, seed=3),
    Choice((0, 1, 2), 4, prefill=False, padding=1, planned=True, seed=4),
    Choice((1,), 6, prefill=True, padding=0, planned=True, seed=5),
    Choice((0, 1, 2), 1, prefill=False, padding=1, planned=True, seed=6),
]


def test_providers_and_steps_say_what_ran(tiny_weights: ModelWeights) -> None:
    r = stock()
    (seen,) = interleaved(tiny_weights, SOME, 1, 1, r, r)
    executor = seen.backend
    assert isinstance(executor, Executor)
    assert executor.providers() == ("reference", "stock")
    assert executor.steps() == {"unprepared": 3, "planned": 3}
    assert set(executor.served().values()) == {"reference"}
    assert len(executor.served()) == 16


def test_before_any_step_nobody_has_computed(tiny_weights: ModelWeights) -> None:
    def one_rank(comm: LocalCommunicator) -> tuple[Any, ...]:
        model = rank_model(tiny_weights, comm, 1, 1, stock(), stock(), fp8=False)
        executor = model.specialized(comm, ChosenPlan())  # type: ignore[arg-type]
        return executor.providers(), executor.steps(), executor.served()

    (ended,) = LocalGroup(exchanges_of(tiny(), 1, 1, 64, torch.float32)).run(one_rank)
    assert ended.value == ((), {}, {})


def test_another_provider_takes_one_operator_over_and_is_named(tiny_weights: ModelWeights) -> None:
    """Halving what the KDA core returns must show in the logits: the provider did run."""

    def one_rank(comm: LocalCommunicator) -> tuple[Any, ...]:
        model = rank_model(tiny_weights, comm, 1, 1, stock(), stock(), fp8=False)
        built = model.specialized(comm, ChosenPlan(planned=True))  # type: ignore[arg-type]
        core = built.operators.kda_core.run
        half = Provider("halving-core", lambda w, p, s, part: core(w, p, s, part) / 2)
        executor = replace(built, operators=replace(built.operators, kda_core=half))
        steps = [step for _, step in Schedule(tiny().vocab_size).steps(SOME[:1])]
        logits = [executor.step(step).logits for step in steps]
        return executor.served()["kda_core"], executor.providers(), logits[-1]

    group = LocalGroup(exchanges_of(tiny(), 1, 1, 64, torch.float32))
    (ended,) = group.run(one_rank)
    assert ended.value is not None
    core, providers, logits = ended.value
    assert core == "halving-core"
    assert providers == ("reference", "halving-core", "stock")
    (plain,) = interleaved(tiny_weights, SOME[:1], 1, 1, stock(), stock())
    assert not torch.equal(logits, plain.outputs[-1].logits)


def test_what_a_drafter_reads_is_the_stream_after_its_layers(tiny_weights: ModelWeights) -> None:
    r = exact(torch.float64)
    (seen,) = interleaved(tiny_weights, SOME, 1, 1, r, r)
    (plain,) = all_stock(tiny_weights, SOME, 1, 1, r)
    for x, y in zip(seen.outputs, plain.outputs, strict=True):
        assert len(x.aux) == len(AUX)
        for p, q in zip(x.aux, y.aux, strict=True):
            assert torch.allclose(p, q, rtol=1e-12, atol=1e-12)


def first_state_distance(got: Seen, plain: Seen) -> tuple[float, float]:
    """How far layer 0's states of two runs are apart, and how far one token may move them.

    Layer 0 reads the embedding, so both columns see the same x there, step after step. They differ
    in `conv_out` alone: BF16 or not rounded, a relative 2^-9 of every element of q, k and v. So
    |dv| <= 2^-9 |v|, and |dk| <= 2^-8 for the normed key (once for the element, once for the norm).
    With u = beta (v - S k), beta < 1 and |k| = 1, one token changes a state row by at most
    d = 2^-9 |v| + 2^-8 |S| + 2^-8 |u|, and |u| <= |v| + |S|. The step S -> S decay (1 - beta k k^T)
    never expands, so over n tokens the distances add up: n times the largest d.
    """
    (a, conv_a, *_), (b, conv_b, *_) = ([*tensors(seen.caches)] for seen in (got, plain))
    assert same_bits(conv_a, conv_b)  # the raw inputs are no other
    untouched = torch.full_like(b[0], 7.0)
    live = [n for n in range(1, len(b)) if not torch.equal(b[n], untouched)]
    carried = [n for n in live if n % (1 + DRAFT) == 1]  # column 0 holds the window
    kda = got.weights.layers[0].attention
    assert isinstance(kda, PackedKda)
    v_taps = conv_b[carried].float()[:, -len(kda.dt_bias) :]  # [slots, W, width - 1 + draft]
    v_taps = torch.where(v_taps == 8.0, 0.0, v_taps)  # never written
    # |v| <= |sum of taps|, since |silu(x)| <= |x|.
    v = float((kda.conv[-len(kda.dt_bias) :].abs().sum(1) * v_taps.abs().amax((0, 2))).amax())
    row = float(b[live].norm(dim=-1).amax())
    moved = float((a[live] - b[live]).norm(dim=-1).amax())
    return moved, 2**-9 * v + 2**-8 * row + 2**-8 * (v + row)


@settings(max_examples=8, deadline=None)
@given(chosen=choices())
def test_with_the_specialised_rounding_the_first_state_keeps_the_derived_bound(
    chosen: list[Choice], tiny_weights: ModelWeights
) -> None:
    (got,) = interleaved(tiny_weights, chosen, 1, 1, stock(), specialized_rounding("bf16", 1))
    (plain,) = all_stock(tiny_weights, chosen, 1, 1, stock())
    moved, each = first_state_distance(got, plain)
    assert moved <= each * (sum(choice.rows for choice in chosen) + 5)


def test_a_state_that_is_lost_exceeds_that_bound(tiny_weights: ModelWeights) -> None:
    """The same comparison of a run whose planned steps forget what they have learned."""

    def forgetful(executor: Executor) -> Executor:
        core = executor.operators.kda_core.run

        def forget(w: Any, projected: Any, state: Any, part: Any) -> torch.Tensor:
            heads = core(w, projected, state, part)
            for slot in part.slots[part.lengths > 0].flatten().tolist():
                state.recurrent[slot] = 0
            return heads

        return replace(
            executor, operators=replace(executor.operators, kda_core=Provider("f", forget))
        )

    rounding = specialized_rounding("bf16", 1)
    (got,) = interleaved(tiny_weights, SOME[:1], 1, 1, stock(), rounding, change=forgetful)
    (plain,) = all_stock(tiny_weights, SOME[:1], 1, 1, stock())
    moved, each = first_state_distance(got, plain)
    assert moved > each * (SOME[0].rows + 5)


def test_specialised_steps_are_as_near_to_exact_ones_as_stock_steps_are(
    untied_weights: ModelWeights,
) -> None:
    """Logits, states and pages of all layers, step by step from the same states.

    The specialised column rounds at fewer points than the stock one, and nowhere coarser with BF16
    experts; so its distance from the exact step is of the same size, and the two columns are apart
    by no more than both distances together. A single step may flip the choice of an expert in
    either column, which alone moves the logits by tenths; so the bound is on the root mean square
    over many steps: twice the stock one's, and one BF16 step.
    """
    rounding = specialized_rounding("bf16", 1)
    squares: dict[int, list[tuple[float, float]]] = {}

    def one_rank(comm: LocalCommunicator) -> None:
        model = rank_model(untied_weights, comm, 1, 1, stock(), rounding, fp8=False)
        executor = model.specialized(comm, ChosenPlan(planned=True))  # type: ignore[arg-type]
        others = [
            rank_model(untied_weights, SingleRank(), 1, 1, r, r, fp8=False)
            for r in (stock(), exact(torch.float64))
        ]
        backends = [other.auto(SingleRank()) for other in others]
        for choice, step in Schedule(tiny().vocab_size).steps(MANY):
            logits = [b.step(step).logits for b in (executor, *backends)]
            caches = [[*tensors(one.caches)] for one in (model, *others)]
            if not choice.prefill:
                live = (step.lengths > 0).repeat_interleave(choice.rows)
                seen = [[rows[live], *own] for rows, own in zip(logits, caches, strict=True)]
                for place, (a, b, c) in enumerate(zip(*seen, strict=True)):
                    squares.setdefault(place, []).append((off(a, c) ** 2, off(b, c) ** 2))
            for target in caches[1:]:
                for to, source in zip(target, caches[0], strict=True):
                    to.copy_(source)

    (ended,) = LocalGroup(exchanges_of(tiny(), 1, 1, 64, rounding.compute)).run(one_rank)
    assert ended.failure is None
    assert len(squares) == 11
    for place, pairs in squares.items():
        assert len(pairs) >= 20
        ours, stocks = (math.sqrt(sum(own) / len(own)) for own in zip(*pairs, strict=True))
        assert ours <= 2 * stocks + 2**-8, (place, ours, stocks)


MANY = [
    Choice(
        tuple(sorted({n % 3, n * n % 3, n // 2 % 3})),
        1 + n % 4,
        prefill=n % 9 == 8,
        padding=n % 3,
        planned=True,
        seed=n,
    )
    for n in range(27)
]


def off(a: torch.Tensor, b: torch.Tensor) -> float:
    """Relative L2 distance."""
    return float((a.double() - b.double()).norm() / b.double().norm())


@settings(max_examples=6, deadline=None)
@given(chosen=choices())
def test_with_the_specialised_rounding_the_layout_is_the_same(
    chosen: list[Choice], tiny_weights: ModelWeights
) -> None:
    r = stock()
    (got,) = interleaved(tiny_weights, chosen, 1, 1, r, specialized_rounding("mxfp8", 8))
    (plain,) = all_stock(tiny_weights, chosen, 1, 1, r)
    for x, y in zip(tensors(got.caches), tensors(plain.caches), strict=True):
        assert (x.dtype, x.shape, x.stride()) == (y.dtype, y.shape, y.stride())
        assert bool(torch.isfinite(x.float()).all())


def test_the_comparison_of_bits_sees_another_rounding(tiny_weights: ModelWeights) -> None:
    got = interleaved(tiny_weights, SOME, 1, 1, stock(), specialized_rounding("bf16", 1))
    with pytest.raises(AssertionError):
        assert_same(got, all_stock(tiny_weights, SOME, 1, 1, stock()))


def test_a_step_that_ends_in_an_error_ends_the_executor(tiny_weights: ModelWeights) -> None:
    """Layer 0 has moved its state by then; neither planned nor other steps may go on from it."""

    def one_rank(comm: LocalCommunicator) -> tuple[list[str], Any]:
        model = rank_model(tiny_weights, comm, 1, 1, stock(), stock(), fp8=False)
        planner = ChosenPlan(planned=True)
        built = model.specialized(comm, planner)  # type: ignore[arg-type]

        def broken(*_: object) -> torch.Tensor:
            raise MemoryError("no room")

        operators = replace(built.operators, moe_experts=Provider("broken", broken))
        executor = replace(built, operators=operators)
        steps = [step for _, step in Schedule(tiny().vocab_size).steps(SOME[:1])]
        executor.step(steps[0])
        said = []
        for planned in (True, True, False):
            planner.planned = planned
            with pytest.raises((MemoryError, FasttrackError)) as caught:
                executor.step(steps[1])
            said.append(f"{caught.type.__name__}: {caught.value}")
        return said, executor.steps()

    (ended,) = LocalGroup(exchanges_of(tiny(), 1, 1, 64, torch.float32)).run(one_rank)
    assert ended.value is not None
    said, steps = ended.value
    later = "StepStoppedError: an earlier step ended in MemoryError: no room"
    assert said == ["MemoryError: no room", later, later]
    assert steps == {"unprepared": 1}


def test_caches_of_another_model_are_refused(tiny_weights: ModelWeights) -> None:
    def one_rank(comm: LocalCommunicator) -> None:
        model = rank_model(tiny_weights, comm, 1, 1, stock(), stock(), fp8=False)
        executor = model.specialized(comm, ChosenPlan(planned=True))  # type: ignore[arg-type]
        swapped = Caches((model.caches.layers[3], *model.caches.layers[1:]))
        (step,) = [s for c, s in Schedule(tiny().vocab_size).steps(SOME[:1]) if not c.prefill]
        with pytest.raises(ValueError, match="allocated for another model"):
            replace(executor, caches=swapped).step(step)

    LocalGroup(exchanges_of(tiny(), 1, 1, 64, torch.float32)).run(one_rank)
