# SPDX-License-Identifier: Apache-2.0
"""The whole model with prepared operators, next to reference providers and the reference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from fasttrack.pytest_plugin import Recorder
from kimi_k3.backends import RankModel, Setup, specialized_rounding
from kimi_k3.config import mini
from kimi_k3.decode.comm.local import LocalCommunicator, LocalGroup
from kimi_k3.decode.exchanges import exchanges_of
from kimi_k3.decode.executor import Executor
from kimi_k3.engine.options import EngineConfig
from kimi_k3.mini.assembly import added_bytes, of, prepare, prepared
from kimi_k3.mini.assembly import tensors as every_tensor
from kimi_k3.mini.identity import SEED, weights_digest
from kimi_k3.mini.kda import PreparedKda
from kimi_k3.packed import PackedKda, pack
from kimi_k3.ranks import SingleRank
from kimi_k3.reference.context import Context
from kimi_k3.reference.model import Model
from kimi_k3.reference.state import FP8, Caches, KdaState, KvCache, allocate
from kimi_k3.rounding import Rounding
from kimi_k3.step import Step, StepOutput
from kimi_k3.weights import ModelWeights
from tests.kimi_k3.decode.server import SHAPE, Choice, ChosenPlan, Schedule, poisoned, tensors

from .builders import EXACT, KDA, near, packed, same, weights
from .cells import MANIFEST, tried

REPLACED = {
    "prepared-residual": {"mix", "attention_out"},
    "prepared-kda": {"kda_in", "kda_core"},
    "prepared-mla": {"mla_in", "mla_query", "mla_core", "mla_value"},
    "prepared-ffn": {"dense", "moe_shared"},
    "prepared-router": {"moe_front", "moe_route"},
    "prepared-experts": {"moe_experts", "moe_tail"},
    "prepared-head": {"head"},
    "reference": {"embed"},
}


@dataclass(frozen=True)
class Seen:
    """What one rank holds after a schedule, and what its steps returned."""

    outputs: list[StepOutput]
    caches: Caches
    executor: Executor


def steps(seed: int) -> list[Choice]:
    """Windows of every width up to four, with and without padding, and one step that falls back."""
    return [
        Choice((0, 1, 2), 4, prefill=False, padding=1, planned=True, seed=seed % 1000 + 2),
        Choice((0, 2), 1, prefill=False, padding=0, planned=True, seed=seed % 1000 + 3),
        Choice((0, 1, 2), 4, prefill=False, padding=2, planned=False, seed=seed % 1000 + 4),
        Choice((1,), 3, prefill=False, padding=0, planned=True, seed=seed % 1000 + 5),
        Choice((0, 1, 2), 2, prefill=False, padding=1, planned=True, seed=seed % 1000 + 6),
    ]


def model_of(
    seed: int, tp: int, rank: int, kv: str, operators: str, rounding: Rounding
) -> RankModel:
    """One rank over caches in which everything that nobody wrote shows."""
    setup = Setup(
        mini(),
        EngineConfig(),
        tp,
        fp8_cache=kv == "fp8_e4m3",
        rounding=rounding if rounding is EXACT else None,
        planned_rounding=rounding,
        decode_operators=operators,
    )
    form = KvCache(torch.empty(0, dtype=FP8), 0.5, 0.25) if setup.fp8_cache else None
    own = weights(seed, tp, rank)
    caches = allocate(mini(), own, setup.stock_rounding, SHAPE, form)
    poisoned(caches)
    return RankModel(setup, pack(mini(), own), caches)


def run(seed: int, tp: int, kv: str, operators: str, judge: Recorder | None = None) -> list[Seen]:
    """A schedule on all ranks; with a judge in float64, and every planned step as the reference."""
    rounding = specialized_rounding("bf16", tp) if judge is None else EXACT

    def one_rank(comm: LocalCommunicator) -> Seen:
        model = model_of(seed, tp, comm.rank, kv, operators, rounding)
        planner = ChosenPlan()
        executor = model.specialized(comm, planner)  # type: ignore[arg-type]
        seen = Seen([], model.caches, executor)
        for choice, step in Schedule(mini().vocab_size).steps(steps(seed)):
            planner.planned = choice.planned
            before = copied(model.caches)
            seen.outputs.append(executor.step(step))
            if judge is not None and choice.planned:
                reference = Model(Context(mini(), EXACT, comm.stock), weights(seed, tp, comm.rank))
                judged(judge, reference, step, before, seen)
        return seen

    ended = LocalGroup(exchanges_of(mini(), tp, 1, 64, rounding.compute)).run(one_rank)
    assert [one.failure for one in ended] == [None] * tp
    return [one.value for one in ended if one.value is not None]


def copied(caches: Caches) -> Caches:
    return Caches(
        tuple(
            KdaState(one.recurrent.clone(), one.conv.clone())
            if isinstance(one, KdaState)
            else replace(one, pages=one.pages.clone())
            for one in caches.layers
        )
    )


def judged(judge: Recorder, reference: Model, step: Step, caches: Caches, got: Seen) -> None:
    """The reference takes the same step from the same caches."""
    (part,) = step.parts()
    want = reference.step(
        step.token_ids,
        part.group.rows,
        caches,
        slots=step.slots,
        accepted=step.accepted,
        block_table=step.block_table,
        lengths=step.lengths,
    )
    live = (step.lengths > 0).repeat_interleave(part.group.rows)
    near(judge, "logits", got.outputs[-1].logits[live], want.logits[live])
    for x, y in zip(tensors(got.caches), tensors(caches), strict=True):
        near(judge, "caches", x, y)


@tried("assembly", 2)
def test_any_schedule_gives_the_bits_of_reference_providers(
    fasttrack_cell: Mapping[str, Any], fasttrack_seeds: Sequence[int], fasttrack_record: Recorder
) -> None:
    """Logits, streams, states and pages of all ranks."""
    tp, kv = int(fasttrack_cell["tensor_parallel"]), str(fasttrack_cell["kv_cache"])
    for seed in fasttrack_seeds:
        ours, theirs = (run(seed, tp, kv, name) for name in ("prepared", "reference"))
        for one, other in zip(ours, theirs, strict=True):
            for x, y in zip(one.outputs, other.outputs, strict=True):
                same(fasttrack_record, "hidden", x.hidden, y.hidden)
                same(fasttrack_record, "logits", x.logits, y.logits)
            for a, b in zip(tensors(one.caches), tensors(other.caches), strict=True):
                same(fasttrack_record, "caches", a, b)
            assert one.executor.steps() == {"unprepared": 2, "planned": 4}
            for operator, name in one.executor.served().items():
                fasttrack_record.launched(f"{name}: {operator}")


@tried("assembly", 2)
def test_every_planned_step_in_float64_is_that_of_the_reference(
    fasttrack_cell: Mapping[str, Any], fasttrack_seeds: Sequence[int], fasttrack_record: Recorder
) -> None:
    tp, kv = int(fasttrack_cell["tensor_parallel"]), str(fasttrack_cell["kv_cache"])
    for seed in fasttrack_seeds:
        for one in run(seed, tp, kv, "prepared", fasttrack_record):
            fasttrack_record.launched("prepared", one.executor.steps()["planned"])


def test_all_operators_but_the_embedding_are_replaced_and_named() -> None:
    (one,) = run(1, 1, "bf16", "prepared")
    by_name: dict[str, set[str]] = {}
    for operator, name in one.executor.served().items():
        by_name.setdefault(name, set()).add(operator)
    assert by_name == REPLACED
    (plain,) = run(1, 1, "bf16", "reference")
    assert set(plain.executor.served().values()) == {"reference"}


def test_the_packed_weights_stay_as_they_are_and_the_rest_is_counted() -> None:
    p = packed(1)
    ready = prepare(p, torch.float32)
    assert ready.lm_head is p.lm_head
    assert ready.embed_tokens is p.embed_tokens
    experts = sum(2 * e.w13_packed.numel() + 2 * e.w2_packed.numel() for e in routed(1))
    added = added_bytes(p, ready)
    assert added > 4 * experts
    total = sum(t.numel() for t in every_tensor(ready))
    assert added < 4 * total


def routed(seed: int) -> list[Any]:
    return [layer.ffn.experts for layer in packed(seed).layers[mini().dense_layers :]]  # type: ignore[union-attr]


def test_an_operator_that_is_given_packed_weights_says_so() -> None:
    w = packed(1).layers[KDA].attention
    with pytest.raises(TypeError, match="PackedKda is not prepared; want PreparedKda"):
        of(PreparedKda, w)
    assert of(PackedKda, w) is w


def test_tokens_that_are_spread_over_ranks_are_refused() -> None:
    def one_rank(comm: LocalCommunicator) -> None:
        model = model_of(1, 2, comm.rank, "bf16", "reference", EXACT)
        executor = model.specialized(comm, ChosenPlan())  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="prepared operators hold all tokens; saw dcp 2"):
            prepared(executor, Context(mini(), EXACT, comm, comm))
        assert prepared(executor, Context(mini(), EXACT, comm, SingleRank())) is not executor

    LocalGroup(exchanges_of(mini(), 2, 1, 64, torch.float64)).run(one_rank)


def test_the_manifest_names_the_random_weights(mini_weights: ModelWeights) -> None:
    assert SEED == 0
    assert MANIFEST.weights.digest == weights_digest(mini(), mini_weights)
    other = replace(mini_weights, norm=mini_weights.norm + 1)
    assert MANIFEST.weights.digest != weights_digest(mini(), other)
