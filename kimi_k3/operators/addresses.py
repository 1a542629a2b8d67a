# SPDX-License-Identifier: Apache-2.0
"""Where a group's requests keep their state, and writes that leave padding's memory alone.

A request is padding when its start slot is <= 0 or its length is 0 (spec 2.4). Which requests
are padding is known on the device only, so every operation has the same shape with and without
them: reads *select* zeros, and a write of a padding row becomes one that changes no bit.
"""

from dataclasses import dataclass

import torch

from kimi_k3.step import GroupTensors, Kind


@dataclass(frozen=True)
class Starts:
    """Where each of R requests begins.

    Attributes:
        live: [R] bool: not padding.
        fresh: [R] bool: a prefill from the first token on; the slot's contents do not count.
        slot: [R] int64: whose S the request starts from; 0 for padding.
        offset: [R] int64: of its three newest inputs in the convolution window of slot column 0.
    """

    live: torch.Tensor
    fresh: torch.Tensor
    slot: torch.Tensor
    offset: torch.Tensor


def starts(part: GroupTensors) -> Starts:
    """The starts of a group: the slot and the offset that `accepted` selects."""
    slots = part.slots.long()  # [R, columns]
    known = (slots[:, 0] > 0) & (part.lengths > 0)  # [R]
    fresh = known & (part.lengths == part.group.rows)  # [R]
    if part.group.kind is not Kind.PREFILL:
        fresh = torch.zeros_like(fresh)
    offset = torch.where(known & ~fresh, part.accepted.long(), 1) - 1  # [R]
    slot = slots.gather(1, offset[:, None])[:, 0]  # [R]
    slot = torch.where(known, slot.clamp(min=0), 0)
    return Starts(slot > 0, fresh, slot, offset)


def select_live(live: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """`rows` [M, ...] of R requests, M a multiple of R, with zeros for padding; `live` [R]."""
    by_request = rows.unflatten(0, (len(live), -1))  # [R, q, ...]
    alive = live.view(-1, *(1 for _ in by_request.shape[1:]))  # [R, 1, ...]
    return torch.where(alive, by_request, 0.0).flatten(0, 1)


def positions(part: GroupTensors) -> torch.Tensor:
    """The position [R, q] of each row in its request; negative for padding."""
    row = torch.arange(part.group.rows, device=part.lengths.device)  # [q]
    return (part.lengths.long() - part.group.rows)[:, None] + row


def write_slots(
    target: torch.Tensor, slots: torch.Tensor, values: torch.Tensor, live: torch.Tensor
) -> None:
    """Stores `values` [R, ...] at `target[slots]` where `live`.

    Other rows write to the null slot what stands there already. No live row can be there, so the
    order of the writes does not matter.
    """
    place = torch.where(live, slots, 0)  # [R]
    alive = live.view(-1, *(1 for _ in values.shape[1:]))  # [R, 1, ...]
    target.index_put_((place,), torch.where(alive, values.to(target.dtype), target[0]))


def write_rows(
    target: torch.Tensor, places: torch.Tensor, values: torch.Tensor, live: torch.Tensor
) -> None:
    """Stores `values` [M, n] at `target[places]`, of [rows, n], where `live` [M].

    There is no null row. A row that is not live repeats the write of the first live row, the same
    bits to the same place; when none is live, all write to row 0 what stands there already.
    """
    own = torch.arange(len(live), device=live.device)  # [M]
    source = torch.where(live, own, live.to(torch.int8).argmax())  # [M]
    place = torch.where(live, places, 0)[source]  # [M]
    target.index_put_((place,), torch.where(live.any(), values[source], target[place]))
