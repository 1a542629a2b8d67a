# SPDX-License-Identifier: Apache-2.0
"""A little server that turns choices into steps, and runs them on one or two backends."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from hypothesis import strategies as st

from kimi_k3.decode.plan import Fallback, Plan, Reason
from kimi_k3.reference.state import Caches, CacheShape, KdaState
from kimi_k3.step import Group, Kind, Step, StepShape

REQUESTS = 3
DRAFT = 3
PAGES_EACH = 6
PAGE_SIZE = 4
SHAPE = CacheShape(
    slots=1 + REQUESTS * (1 + DRAFT),
    pages=REQUESTS * PAGES_EACH + 1,
    page_size=PAGE_SIZE,
    draft=DRAFT,
)


@dataclass(frozen=True)
class Choice:
    """One step to take: which requests bring how many tokens, and who may compute it.

    Attributes:
        requests: who takes part.
        rows: tokens of each.
        prefill: start the requests anew, with a prompt of `rows` tokens.
        padding: null requests behind them.
        planned: whether the planner takes it.
        seed: of tokens and accepted counts.
    """

    requests: tuple[int, ...]
    rows: int
    prefill: bool
    padding: int
    planned: bool
    seed: int


def choices() -> st.SearchStrategy[list[Choice]]:
    """Steps in any order; all requests have been prefilled before the first."""
    one = st.builds(
        Choice,
        requests=st.sets(st.integers(0, REQUESTS - 1), min_size=1).map(lambda s: tuple(sorted(s))),
        rows=st.integers(1, 1 + DRAFT),
        prefill=st.sampled_from([False] * 4 + [True]),
        padding=st.integers(0, 2),
        planned=st.booleans(),
        seed=st.integers(0, 2**16),
    )
    return st.lists(one, min_size=1, max_size=7)


def everything_started() -> Choice:
    return Choice(tuple(range(REQUESTS)), 5, prefill=True, padding=0, planned=False, seed=1)


@dataclass
class Schedule:
    """Lengths and accepted counts of each request; makes the steps."""

    vocab: int
    lengths: list[int] = field(default_factory=lambda: [0] * REQUESTS)
    accepted: list[int] = field(default_factory=lambda: [1] * REQUESTS)

    def step(self, choice: Choice) -> Step | None:
        """The step of a choice; None when a request would outgrow its pages."""
        random = torch.Generator().manual_seed(choice.seed)
        rows, taking = choice.rows, choice.requests
        after = [rows if choice.prefill else self.lengths[r] + rows for r in taking]
        if max(after) > PAGES_EACH * PAGE_SIZE:
            return None
        null = 0 if choice.prefill else choice.padding
        kind = Kind.PREFILL if choice.prefill else Kind.WINDOW
        columns = 1 + DRAFT
        slots = [[1 + r * columns + t for t in range(columns)] for r in taking]
        tables = [[1 + r * PAGES_EACH + p for p in range(PAGES_EACH)] for r in taking]
        accepted = [1 if choice.prefill else self.accepted[r] for r in taking]
        total = len(taking) + null
        for r, length in zip(taking, after, strict=True):
            window = int(torch.randint(1, rows + 1, (), generator=random))
            # Rejected tokens are dropped from the length; the next step writes over them.
            self.accepted[r] = 1 if choice.prefill else window
            self.lengths[r] = length if choice.prefill else length - rows + window
        return Step(
            StepShape((Group(kind, total, rows),), max(after)),
            torch.randint(0, self.vocab, (total * rows,), generator=random),
            torch.tensor(slots + [[0] * columns] * null),
            torch.tensor(accepted + [1] * null),
            torch.tensor(tables + [[0] * PAGES_EACH] * null),
            torch.tensor(after + [0] * null),
        )

    def steps(self, chosen: Sequence[Choice]) -> Iterator[tuple[Choice, Step]]:
        for choice in (everything_started(), *chosen):
            step = self.step(choice)
            if step is not None:
                yield choice, step


@dataclass
class ChosenPlan:
    """A planner that does what the schedule says, whatever the shape."""

    planned: bool = False

    def plan(self, shape: StepShape) -> Plan | Fallback:
        group = shape.groups[0]
        if self.planned and group.kind is Kind.WINDOW:
            return Plan(group.requests, group.rows)
        return Fallback(Reason.UNPREPARED)


def tensors(caches: Caches) -> Iterator[torch.Tensor]:
    for layer in caches.layers:
        if isinstance(layer, KdaState):
            yield layer.recurrent
            yield layer.conv
        else:
            yield layer.pages


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Also signs of zeros and NaNs."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))


def poisoned(caches: Caches) -> None:
    """Fills everything with values that would show if they were read."""
    for index, tensor in enumerate(tensors(caches)):
        tensor.copy_(torch.full_like(tensor, 7.0 + index))
