# SPDX-License-Identifier: Apache-2.0
"""What one step of the model computes: the host's description of it, and its tensors.

A step takes new tokens of several requests at once. Requests that bring equally many tokens stand
together in a *group*; rows are the tokens of all requests, request by request. A group of
*windows* decodes: one token of each request, or a verify window of 1 + draft tokens. A group of
*prefills* takes in tokens of a prompt.

`StepShape` is host state that every rank shares: what a step does, and which backend takes it, is
decided from it alone. The tensors of `Step` live on the model's device and are never read by the
host, so that a step can be captured into a graph.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import torch

from fasttrack.errors import FasttrackError


class Kind(StrEnum):
    """How a group's new tokens relate to its requests."""

    WINDOW = "window"
    """The newest tokens of running requests; every row's logits are wanted."""
    PREFILL = "prefill"
    """Tokens of a prompt; only the logits of the last one are wanted."""


@dataclass(frozen=True)
class Group:
    """Consecutive requests of a step that bring equally many new tokens.

    Attributes:
        kind: windows or prefills.
        requests: how many, padding included.
        rows: new tokens of each.
    """

    kind: Kind
    requests: int
    rows: int

    def __post_init__(self) -> None:
        if self.requests < 1 or self.rows < 1:
            raise ValueError(f"{self.requests} requests of {self.rows} rows; want at least 1 each")

    @property
    def total(self) -> int:
        """Rows of the whole group."""
        return self.requests * self.rows


@dataclass(frozen=True)
class StepShape:
    """What every rank knows of a step without looking at its tensors.

    Attributes:
        groups: in the order of their requests and rows.
        context: tokens of the longest request, the new ones included.
    """

    groups: tuple[Group, ...]
    context: int

    @property
    def requests(self) -> int:
        """Requests of all groups, padding included."""
        return sum(group.requests for group in self.groups)

    @property
    def rows(self) -> int:
        """Rows of all groups."""
        return sum(group.total for group in self.groups)

    def logit_rows(self) -> list[int]:
        """Rows whose logits the step returns: all of a window, the last of a prefill."""
        wanted: list[int] = []
        start = 0
        for group in self.groups:
            if group.kind is Kind.WINDOW:
                wanted.extend(range(start, start + group.total))
            else:
                wanted.extend(range(start + group.rows - 1, start + group.total, group.rows))
            start += group.total
        return wanted


@dataclass(frozen=True)
class GroupTensors:
    """One group's part of a step: R requests of `group.rows` tokens each.

    Attributes:
        group: how many.
        rows: where the group stands among the step's rows.
        slots: [R, columns] see `Step`.
        accepted: [R].
        block_table: [R, pages].
        lengths: [R].
    """

    group: Group
    rows: slice
    slots: torch.Tensor
    accepted: torch.Tensor
    block_table: torch.Tensor
    lengths: torch.Tensor


@dataclass(frozen=True)
class Step:
    """One step of R requests and M rows.

    Attributes:
        shape: groups of the step.
        token_ids: [M] the new tokens.
        slots: [R, columns] state slot of each position of a window, 0 (the null slot) for padding.
            Column 0 also carries the convolution window; a prefill uses it alone. Columns past a
            group's rows matter when the request's previous window was longer.
        accepted: [R] tokens of the request's *previous* window that survived: 1 after a plain
            step, after a prefill, and before the first token.
        block_table: [R, pages] KV page of each run of `page_size` tokens that this rank holds.
        lengths: [R] tokens of each request including the new ones; 0 for padding. Padding stands
            behind the live requests of its group. A prefill whose length equals its rows starts
            from empty state, whatever the slot holds.

    Raises:
        ValueError: the tensors' shapes do not fit the groups.
    """

    shape: StepShape
    token_ids: torch.Tensor
    slots: torch.Tensor
    accepted: torch.Tensor
    block_table: torch.Tensor
    lengths: torch.Tensor

    def __post_init__(self) -> None:
        requests = self.shape.requests
        windows = [group.rows for group in self.shape.groups if group.kind is Kind.WINDOW]
        fits = (
            self.token_ids.shape == (self.shape.rows,)
            and self.slots.ndim == 2
            and self.slots.shape[0] == requests
            and self.slots.shape[1] >= max(windows, default=1)
            and self.accepted.shape == self.lengths.shape == (requests,)
            and self.block_table.ndim == 2
            and len(self.block_table) == requests
        )
        if not fits:
            raise ValueError(f"tensors of other shapes than {self.shape}")

    def parts(self) -> Iterator[GroupTensors]:
        """The groups with their tensors, in order."""
        request = row = 0
        for group in self.shape.groups:
            own = slice(request, request + group.requests)
            yield GroupTensors(
                group,
                slice(row, row + group.total),
                self.slots[own],
                self.accepted[own],
                self.block_table[own],
                self.lengths[own],
            )
            request, row = own.stop, row + group.total


@dataclass(frozen=True)
class StepOutput:
    """What one step returns.

    Attributes:
        hidden: [M, H] h, before the last norm.
        aux: [M, H] each: the residual stream after each layer that a drafter asked for.
        logits: [n, V] of the rows that `StepShape.logit_rows` names, in that order.
    """

    hidden: torch.Tensor
    aux: tuple[torch.Tensor, ...]
    logits: torch.Tensor


class Backend(Protocol):
    """One rank's model with its caches: what the engine drives."""

    def step(self, step: Step) -> StepOutput:
        """Compute a step and advance the caches; all ranks make the same calls."""

    def providers(self) -> tuple[str, ...]:
        """What has computed so far, each named once: `stock`, `reference`, kernels."""


class StepStoppedError(FasttrackError):
    """A step ended in an error that is none of ours; the caches may be ahead of the requests."""


def lasting(error: BaseException) -> FasttrackError:
    """What every later call raises after `error` ended a step: itself, if it is one of ours."""
    if isinstance(error, FasttrackError):
        return error
    return StepStoppedError(f"an earlier step ended in {type(error).__name__}: {error}")
