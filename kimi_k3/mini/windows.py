# SPDX-License-Identifier: Apache-2.0
"""Where a step's requests keep their state, found once for all layers.

The rules are those of `kimi_k3.operators.addresses`, which finds them in every layer anew and on
the device. Here the host reads which requests are padding, so that a step without any selects
nothing, and what padding would write is not written at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch

from kimi_k3.config import K3Config
from kimi_k3.operators.addresses import Starts, positions, starts
from kimi_k3.step import GroupTensors

Chosen = torch.Tensor | None
"""Indices of some rows; None for all of them."""


@dataclass(frozen=True)
class Pages:
    """Which cached rows a group of windows writes and reads: R requests of q rows.

    Attributes:
        places: [M] where each row is written, among the rows of all pages.
        live: the rows that are.
        table: [R, pages] the pages to read; 0 behind a request's end.
        empty: [R, n, 1] bool: what stands there is nothing of the request.
        unseen: [R, q, 1, n] bool: keys that a row must not see.
        blind: [M, 1, 1] bool: rows that see nothing, which only padding does; None without any.
    """

    places: torch.Tensor
    live: Chosen
    table: torch.Tensor
    empty: torch.Tensor
    unseen: torch.Tensor
    blind: torch.Tensor | None


@dataclass(frozen=True)
class Window:
    """One group of windows.

    Attributes:
        part: the group.
        begin: where its requests start.
        whole: no request is padding.
        reach: earlier inputs that a convolution reads.
    """

    part: GroupTensors
    begin: Starts
    whole: bool
    reach: int

    @cached_property
    def slots(self) -> torch.Tensor:
        """[R, columns] int64."""
        return self.part.slots.long()

    @cached_property
    def carried(self) -> torch.Tensor:
        """[R] whose convolution window each request reads and writes; 0 for padding."""
        return torch.where(self.begin.live, self.slots[:, 0], 0)

    @cached_property
    def carrying(self) -> Chosen:
        """The requests that write it."""
        return None if self.whole else self.begin.live.nonzero()[:, 0]

    @cached_property
    def written(self) -> Sequence[Chosen]:
        """Of each token, the requests that store their state after it; null slots keep nothing."""
        stored = self.begin.live[:, None] & (self.slots > 0)  # [R, columns]
        if bool(stored.all()):
            return [None] * self.part.group.rows
        return [stored[:, t].nonzero()[:, 0] for t in range(self.part.group.rows)]

    @cached_property
    def alive(self) -> torch.Tensor | None:
        """[M, 1] bool: rows that are not padding; None when all are."""
        if self.whole:
            return None
        return self.begin.live.repeat_interleave(self.part.group.rows)[:, None]

    @cached_property
    def taps(self) -> torch.Tensor:
        """[R, 1, reach]: where in its window each request's inputs before the first row stand."""
        tap = torch.arange(self.reach, device=self.slots.device)
        return (self.begin.offset[:, None] + tap)[:, None]

    def silent(self, rows: torch.Tensor) -> torch.Tensor:
        """`rows` [M, n] with zeros for padding."""
        return rows if self.alive is None else torch.where(self.alive, rows, 0.0)

    def pages(self, size: int) -> Pages:
        """Rows in pages of `size` tokens; the same for every layer."""
        live = self.begin.live[:, None]  # [R, 1]
        position = positions(self.part)  # [R, q]
        table = self.part.block_table.long()
        index = torch.where(live, position, 0)  # [R, q]
        places = table.gather(1, index // size) * size + index % size  # [R, q]
        seen = torch.where(live, position + 1, 0)  # [R, q]
        last = seen[:, -1:]  # [R, 1]
        first = torch.arange(table.shape[1], device=table.device) * size  # [pages]
        token = torch.arange(table.shape[1] * size, device=table.device)  # [n]
        alive = self.alive
        return Pages(
            places.flatten(),
            None if alive is None else alive[:, 0].nonzero()[:, 0],
            torch.where(first < last, table, 0),
            (token >= last)[..., None],
            token >= seen[:, :, None, None],
            None if alive is None else ~alive[..., None],
        )


class Windows:
    """The window of the step that runs; every layer of the step asks with the same group."""

    def __init__(self, config: K3Config) -> None:
        """Knows no step yet."""
        self._reach = config.conv_kernel_size - 1
        self._window: Window | None = None
        self._pages: dict[int, Pages] = {}

    def of(self, part: GroupTensors) -> Window:
        """The window of a group; found anew when another group is asked about."""
        if self._window is None or self._window.part is not part:
            begin = starts(part)
            self._window = Window(part, begin, bool(begin.live.all()), self._reach)
            self._pages = {}
        return self._window

    def pages_of(self, part: GroupTensors, size: int) -> Pages:
        """The pages of a group's window."""
        window = self.of(part)
        if size not in self._pages:
            self._pages[size] = window.pages(size)
        return self._pages[size]


def store(target: torch.Tensor, places: torch.Tensor, values: torch.Tensor, rows: Chosen) -> None:
    """Stores `values` [M, ...] at `target[places]`, of the rows that are chosen alone."""
    values = values.to(target.dtype)
    if rows is not None:
        places, values = places[rows], values[rows]
    target.index_put_((places,), values)
