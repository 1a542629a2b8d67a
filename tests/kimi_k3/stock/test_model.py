# SPDX-License-Identifier: Apache-2.0
"""The stock path against the oracle: prompts in chunks, mixed steps, ranks."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kimi_k3.assembly import shard
from kimi_k3.config import K3Config, tiny
from kimi_k3.packed import pack
from kimi_k3.ranks import Communicator, SingleRank, run_ranks
from kimi_k3.reference.context import Context
from kimi_k3.reference.model import Model
from kimi_k3.reference.state import Caches, CacheShape, allocate
from kimi_k3.rounding import exact, stock
from kimi_k3.step import Group, Kind, Step, StepOutput, StepShape
from kimi_k3.stock.model import StockModel
from kimi_k3.stock.torch_ops import TorchOps
from kimi_k3.weights import ModelWeights
from tests.kimi_k3.decode.server import same_bits, tensors

R = exact(torch.float64)
DRAFT = 3
COLUMNS = 1 + DRAFT
PAGE = 16
PAGES = 10
TIGHT = {"rtol": 1e-9, "atol": 1e-10}
"""Float64 in two orders of summation: 1e-16 times what a few hundred tokens can amplify it."""

Ids = Sequence[int]
Part = tuple[Kind, int, Ids, int, int]
"""Kind, request, new tokens, length after them, accepted."""


def shape_of(requests: int) -> CacheShape:
    return CacheShape(1 + requests * COLUMNS, 1 + requests * PAGES, PAGE, DRAFT)


def served(
    weights: ModelWeights,
    requests: int,
    comm: Communicator | None = None,
    dcp: Communicator | None = None,
    config: K3Config | None = None,
    aux: tuple[int, ...] = (),
) -> StockModel[object]:
    config = config or tiny()
    ctx = Context(config, R, comm or SingleRank(), dcp or SingleRank())
    caches = allocate(config, weights, R, shape_of(requests))
    packed = pack(config, weights)
    return StockModel(config, packed, caches, TorchOps(ctx, packed), aux)  # type: ignore[arg-type]


def step_of(parts: Sequence[Part]) -> Step:
    """One group per part, in the order given."""
    requests = [part[1] for part in parts]
    return Step(
        StepShape(
            tuple(Group(kind, 1, len(ids)) for kind, _, ids, _, _ in parts),
            max(length for *_, length, _ in parts),
        ),
        torch.tensor([i for _, _, ids, _, _ in parts for i in ids]),
        torch.tensor([[1 + r * COLUMNS + t for t in range(COLUMNS)] for r in requests]),
        torch.tensor([accepted for *_, accepted in parts]),
        torch.tensor([[1 + r * PAGES + p for p in range(PAGES)] for r in requests]),
        torch.tensor([length for *_, length, _ in parts]),
    )


def by_token(weights: ModelWeights, prompt: Ids) -> tuple[StepOutput, Caches]:
    """The oracle's prefill of request 0."""
    model = Model(Context(tiny(), R), weights)
    caches = allocate(tiny(), weights, R, shape_of(1))
    out = model.prefill(torch.tensor(prompt), caches, 1, torch.arange(1, 1 + PAGES))
    return StepOutput(out.hidden, out.aux, out.logits), caches


def assert_close(a: torch.Tensor, b: torch.Tensor) -> None:
    assert torch.allclose(a.double(), b.double(), **TIGHT), float((a - b).abs().max())


prompts = st.lists(st.integers(0, 511), min_size=1, max_size=130)


@settings(max_examples=12, deadline=None)
@given(prompt=prompts, data=st.data())
def test_a_prompt_in_any_chunks_equals_the_oracle_token_by_token(
    prompt: list[int], data: st.DataObject, untied_weights: ModelWeights
) -> None:
    cuts = data.draw(st.sets(st.integers(1, max(1, len(prompt) - 1)), max_size=3))
    edges = sorted({0, *(c for c in cuts if c < len(prompt)), len(prompt)})
    model = served(untied_weights, 1)
    for start, stop in pairwise(edges):
        out = model.step(step_of([(Kind.PREFILL, 0, prompt[start:stop], stop, 1)]))
    want, caches = by_token(untied_weights, prompt)
    assert_close(out.logits, want.logits)
    assert_close(out.hidden[-1:], want.hidden)
    for x, y in zip(tensors(model.caches), tensors(caches), strict=True):
        assert_close(x, y)


def test_a_slot_that_was_used_before_starts_from_nothing(untied_weights: ModelWeights) -> None:
    model = served(untied_weights, 1)
    for tensor in tensors(model.caches):
        tensor.fill_(3.0)
    out = model.step(step_of([(Kind.PREFILL, 0, (5, 6, 7), 3, 1)]))
    want, _ = by_token(untied_weights, (5, 6, 7))
    assert_close(out.logits, want.logits)


def test_a_mixed_step_computes_what_its_groups_compute_alone(untied_weights: ModelWeights) -> None:
    """Two windows of different lengths and a chunk that continues a prompt, in one step."""
    first = [
        (Kind.PREFILL, 0, (1, 2, 3, 4), 4, 1),
        (Kind.PREFILL, 1, (9, 8), 2, 1),
        (Kind.PREFILL, 2, tuple(range(40)), 40, 1),
    ]
    second: list[Part] = [
        (Kind.WINDOW, 0, (5,), 5, 1),
        (Kind.WINDOW, 1, (7, 6, 5), 5, 1),
        (Kind.PREFILL, 2, tuple(range(40, 70)), 70, 1),
    ]
    together, alone = served(untied_weights, 3), served(untied_weights, 3)
    for part in first:
        alone.step(step_of([part]))
    together.step(step_of(first))
    mixed = together.step(step_of(second))
    apart = [alone.step(step_of([part])) for part in second]
    assert_close(mixed.logits, torch.cat([out.logits for out in apart]))
    assert_close(mixed.hidden, torch.cat([out.hidden for out in apart]))
    assert len(mixed.logits) == 1 + 3 + 1
    for x, y in zip(tensors(together.caches), tensors(alone.caches), strict=True):
        assert_close(x, y)


def test_a_window_after_a_prefill_equals_the_oracle_for_every_accepted_count(
    untied_weights: ModelWeights,
) -> None:
    for accepted in range(1, COLUMNS + 1):
        model = served(untied_weights, 1, aux=(1, 5))
        model.step(step_of([(Kind.PREFILL, 0, (1, 2, 3), 3, 1)]))
        model.step(step_of([(Kind.WINDOW, 0, (4, 5, 6, 7), 7, 1)]))
        length = 3 + accepted + 2
        out = model.step(step_of([(Kind.WINDOW, 0, (8, 9), length, accepted)]))
        line = (1, 2, 3, *(4, 5, 6, 7)[:accepted], 8, 9)
        want, _ = by_token(untied_weights, line)
        assert_close(out.logits[-1:], want.logits)
        ref = replace(Model(Context(tiny(), R), untied_weights), aux_layers=(1, 5))
        caches = allocate(tiny(), untied_weights, R, shape_of(1))
        wanted = ref.prefill(torch.tensor(line), caches, 1, torch.arange(1, 1 + PAGES))
        for x, y in zip(out.aux, wanted.aux, strict=True):
            assert_close(x[-1:], y)


@pytest.mark.parametrize(("tp", "dcp"), [(2, 1), (4, 4)])
def test_ranks_together_compute_what_one_computes(
    tp: int, dcp: int, untied_weights: ModelWeights
) -> None:
    steps = [
        step_of([(Kind.PREFILL, 0, tuple(range(70)), 70, 1)]),
        step_of([(Kind.WINDOW, 0, (5, 6, 7), 73, 1)]),
        step_of([(Kind.PREFILL, 0, tuple(range(20)), 92, 2)]),
    ]

    def one_rank(comm: Communicator) -> list[torch.Tensor]:
        own = shard(untied_weights, tiny(), tp, comm.rank)
        model = served(own, 1, comm, comm if dcp > 1 else None)
        return [model.step(step).logits for step in steps]

    alone = served(untied_weights, 1)
    want = [alone.step(step).logits for step in steps]
    ranks = run_ranks(tp, one_rank)
    for logits in ranks:
        for x, y, first in zip(logits, want, ranks[0], strict=True):
            assert_close(x, y)
            assert same_bits(x, first)


def test_with_the_stock_rounding_a_prompt_stays_near_the_exact_one(
    untied_weights: ModelWeights,
) -> None:
    """As near as the oracle with the same rounding does, give or take a factor of two."""
    prompt = tuple(range(0, 96, 2))
    want, _ = by_token(untied_weights, prompt)
    ctx = Context(tiny(), stock())
    packed = pack(tiny(), untied_weights)
    caches = allocate(tiny(), untied_weights, stock(), shape_of(1))
    model = StockModel(tiny(), packed, caches, TorchOps(ctx, packed))
    got = model.step(step_of([(Kind.PREFILL, 0, prompt, len(prompt), 1)]))
    oracle = Model(ctx, untied_weights).prefill(
        torch.tensor(prompt),
        allocate(tiny(), untied_weights, stock(), shape_of(1)),
        1,
        torch.arange(1, 1 + PAGES),
    )

    def off(logits: torch.Tensor) -> float:
        return float((logits.double() - want.logits).norm() / want.logits.norm())

    assert off(got.logits) <= 2 * off(oracle.logits) + 2**-8


def test_caches_of_another_model_are_refused(untied_weights: ModelWeights) -> None:
    model = served(untied_weights, 1)
    layers = model.caches.layers
    swapped = replace(model, caches=Caches((layers[3], *layers[1:])))
    with pytest.raises(ValueError, match="allocated for another model"):
        swapped.step(step_of([(Kind.PREFILL, 0, (1,), 1, 1)]))
