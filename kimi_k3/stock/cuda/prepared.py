# SPDX-License-Identifier: Apache-2.0
"""What the GPU operations need of a step, made once for all layers and without a host read."""

from dataclasses import dataclass

import torch

from kimi_k3.step import GroupTensors, Step


@dataclass(frozen=True)
class Part(GroupTensors):
    """One group of a step, its indices int32 as the kernels read them.

    Attributes:
        row_starts: [R + 1] int32 first row of each request within the group; padding has none.
        context: tokens of the longest request of the step.
    """

    row_starts: torch.Tensor
    context: int


@dataclass(frozen=True)
class Prepared:
    """A step.

    Attributes:
        parts: its groups.
        row_lengths: [M] int32 length of the request of each row, 0 for padding.
    """

    parts: tuple[Part, ...]
    row_lengths: torch.Tensor


def prepare(step: Step) -> Prepared:
    """The step with int32 indices."""
    parts = tuple(_part(part, step.shape.context) for part in step.parts())
    by_row = [part.lengths.repeat_interleave(part.group.rows) for part in parts]
    return Prepared(parts, by_row[0] if len(by_row) == 1 else torch.cat(by_row))


def _part(part: GroupTensors, context: int) -> Part:
    slots, accepted, table, lengths = (
        t.to(torch.int32) for t in (part.slots, part.accepted, part.block_table, part.lengths)
    )
    live = (lengths > 0).to(torch.int32) * part.group.rows  # [R]
    starts = torch.nn.functional.pad(live.cumsum(0, dtype=torch.int32), (1, 0))  # [R + 1]
    return Part(part.group, part.rows, slots, accepted, table, lengths, starts, context)
