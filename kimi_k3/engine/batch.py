# SPDX-License-Identifier: Apache-2.0
"""Who takes part in a step with which tokens, and the `Step` that says so to a backend.

Windows come first, ordered by how many rows they bring, then prefills, ordered alike; requests of
one kind and as many rows are a group. A request whose drafter proposed less than a full draft
brings a shorter window, which is a group of its own; nothing is made up to fill it.

Each request's row of `Step.slots` is the same from its first step to its last, whatever the length
of its windows: the state that a window starts from is in slots[accepted - 1].
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch

from kimi_k3.engine.drafters import Draft
from kimi_k3.engine.memory import PageLayout
from kimi_k3.engine.metrics import StepKind
from kimi_k3.engine.state import RequestState
from kimi_k3.step import Group, Kind, Step, StepShape

NO_DRAFT = Draft()


@dataclass(frozen=True)
class Part:
    """One request's share of a step.

    Attributes:
        state: the request.
        kind: window or prefill.
        tokens: new to the caches: of the prompt, or the newest token and its draft.
        draft: of a window.
    """

    state: RequestState
    kind: Kind
    tokens: tuple[int, ...]
    draft: Draft = NO_DRAFT

    @property
    def length(self) -> int:
        """The request's tokens with the new ones."""
        return self.state.computed + len(self.tokens)

    @property
    def logit_rows(self) -> int:
        """Rows of logits that the step returns for it."""
        return len(self.tokens) if self.kind is Kind.WINDOW else 1

    @property
    def decides(self) -> bool:
        """Whether it yields a token: a window, or the end of a prompt."""
        return self.length >= len(self.state.request.prompt)


@dataclass(frozen=True)
class Batch:
    """The parts of one step, in the order of its requests.

    Attributes:
        parts: at least one.
        null_requests: that follow, only after windows of one length.
    """

    parts: tuple[Part, ...]
    null_requests: int = 0

    @property
    def kind(self) -> StepKind:
        """What the step is made of."""
        kinds = {part.kind for part in self.parts}
        if len(kinds) > 1:
            return StepKind.MIXED
        if Kind.PREFILL in kinds:
            return StepKind.PREFILL
        lengths = {len(part.tokens) for part in self.parts}
        return StepKind.DECODE if len(lengths) == 1 else StepKind.RAGGED

    def step(self, columns: int, layout: PageLayout, device: torch.device | str) -> Step:
        """The step's tensors, all int64.

        The block table has room for the longest request of this step and no more: backends that
        can not look at lengths work on all of its width.

        Args:
            columns: of `Step.slots`, 1 + draft.
            layout: of the pages.
            device: where they go.
        """
        parts, requests = self.parts, len(self.parts) + self.null_requests
        width = max(layout.pages(part.length) for part in parts)
        token_ids = [token for part in parts for token in part.tokens]
        token_ids += [0] * (self.null_requests * len(parts[-1].tokens))
        slots = torch.zeros(requests, columns, dtype=torch.long)
        accepted = torch.ones(requests, dtype=torch.long)
        block_table = torch.zeros(requests, width, dtype=torch.long)
        lengths = torch.zeros(requests, dtype=torch.long)
        for row, part in enumerate(parts):
            room = part.state.reserved
            slots[row] = torch.tensor(room.slots)
            accepted[row] = part.state.accepted
            pages = room.pages[: layout.pages(part.length)]
            block_table[row, : len(pages)] = torch.tensor(pages)
            lengths[row] = part.length
        rows = [torch.tensor(token_ids), slots, accepted, block_table, lengths]
        return Step(self._shape(), *(tensor.to(device) for tensor in rows))

    def _shape(self) -> StepShape:
        groups = [
            Group(kind, len([*parts]), rows)
            for (kind, rows), parts in groupby(self.parts, lambda p: (p.kind, len(p.tokens)))
        ]
        last = groups.pop()
        groups.append(Group(last.kind, last.requests + self.null_requests, last.rows))
        return StepShape(tuple(groups), max(part.length for part in self.parts))


def arrange(parts: Sequence[Part], padding: Callable[[int, int], int]) -> Batch:
    """A batch of `parts` in the order of groups, padded if it is windows of one length.

    Raises:
        ValueError: the padding is smaller than what it pads.
    """
    ordered = sorted(parts, key=lambda part: (part.kind is Kind.PREFILL, len(part.tokens)))
    batch = Batch(tuple(ordered))
    if batch.kind is not StepKind.DECODE:
        return batch
    live, rows = len(ordered), len(ordered[0].tokens)
    padded = padding(live, rows)
    if padded < live:
        raise ValueError(f"a padding of {live} requests of {rows} rows to {padded}")
    return Batch(batch.parts, padded - live)
