# SPDX-License-Identifier: Apache-2.0
"""Caches and state slots in the layouts that all backends share; the only file that writes them.

Spec 2.3 (state), 2.4 (slots and the convolution window at verify), 2.5 (cache), 3.3 (its shards).

| what | shape | dtype as served |
|---|---|---|
| S, the KDA state | [slot, head, value, key] | FP32 |
| convolution window | [slot, channel, width - 1 + draft] | BF16 |
| KV cache | [page, token, kv_lora + rope] | BF16, or FP8 e4m3 with per-tensor scales |

Slot 0 is the null slot. A request whose slots are <= 0, or whose length is 0, is padding of a
captured graph: its reads give zeros and its writes do not happen. It is skipped, never multiplied
by a mask, because its rows may hold NaN.

Rows b*q .. b*q+q-1 of a step are the consecutive tokens of request b. Each token of a verify
window has a slot of its own; which slot and which part of the convolution window the *next* step
starts from follows from how many tokens were accepted. Nothing is ever rolled back or copied.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch

from kimi_k3.config import K3Config
from kimi_k3.ranks import Communicator
from kimi_k3.rounding import Rounding
from kimi_k3.weights import KdaWeights, ModelWeights

FP8 = torch.float8_e4m3fn
FP8_MAX = 448.0


@dataclass(frozen=True)
class SlotWindow:
    """Which state slots a step reads and writes.

    Attributes:
        q: rows per request in this step.
        slots: [R, >= q] state slot of each position of the window; column 0 also carries the
            convolution window. Columns past `q` matter when the previous window was longer.
        accepted: [R] tokens of the *previous* window that survived; 1 after a plain step.
            Not read for padding.
    """

    q: int
    slots: torch.Tensor
    accepted: torch.Tensor

    def __post_init__(self) -> None:
        """Refuse what no step may ask.

        Raises:
            ValueError: shapes that do not fit, an accepted count outside the window, or a slot
                that two positions share.
        """
        requests, columns = self.slots.shape
        if not 1 <= self.q <= columns:
            raise ValueError(f"slots has {columns} columns; a window of {self.q} rows needs more")
        if self.accepted.shape != (requests,):
            raise ValueError(f"accepted is {tuple(self.accepted.shape)}; want ({requests},)")
        for b, row in enumerate(self.slots.tolist()):
            if row[0] > 0 and not 1 <= int(self.accepted[b]) <= columns:
                raise ValueError(f"request {b}: accepted {int(self.accepted[b])} of {columns}")
        used = self.slots[self.slots > 0]
        if len(used.unique()) != len(used):
            raise ValueError("two positions share a state slot")

    @cached_property
    def start(self) -> torch.Tensor:
        """[R] the slot each request's state is read from; 0 for padding."""
        position = torch.where(self.slots[:, 0] > 0, self.accepted, 1) - 1  # [R]
        slot = self.slots.gather(1, position.long()[:, None])[:, 0]  # [R]
        return torch.where(self.slots[:, 0] > 0, slot.clamp(min=0), 0)  # [R]

    @cached_property
    def live(self) -> torch.Tensor:
        """[R] bool: requests that are not padding."""
        return self.start > 0


@dataclass(frozen=True)
class PageWindow:
    """Which cache rows a step writes and attends to.

    Attributes:
        q: rows per request in this step.
        block_table: [R, pages] page of each run of `page_size` tokens that this rank holds.
        lengths: [R] tokens of each request including the `q` new ones; 0 for padding.
    """

    q: int
    block_table: torch.Tensor
    lengths: torch.Tensor

    def __post_init__(self) -> None:
        """Refuse lengths that do not hold the window.

        Raises:
            ValueError: shapes that do not fit, or a live request shorter than `q`.
        """
        if self.lengths.shape != (len(self.block_table),):
            raise ValueError(
                f"lengths is {tuple(self.lengths.shape)}; want ({len(self.block_table)},)"
            )
        for b, length in enumerate(self.lengths.tolist()):
            if length != 0 and length < self.q:
                raise ValueError(f"request {b}: length {length} is shorter than its {self.q} rows")

    @property
    def live(self) -> torch.Tensor:
        """[R] bool: requests that are not padding."""
        return self.lengths > 0

    def live_rows(self) -> Iterator[tuple[int, int, int]]:
        """(row, request, position of the row's token) of every row that is not padding."""
        for b, length in enumerate(self.lengths.tolist()):
            if length > 0:
                for t in range(self.q):
                    yield b * self.q + t, b, length - self.q + t


@dataclass(frozen=True)
class KdaState:
    """State slots of one KDA layer on one rank."""

    recurrent: torch.Tensor
    """S [slot, head, value, key]."""
    conv: torch.Tensor
    """[slot, channel, width - 1 + draft]: raw inputs of q, then k, then v; oldest first."""

    def read_recurrent(self, window: SlotWindow, dtype: torch.dtype) -> torch.Tensor:
        """S [R, head, value, key] that each request starts from; zeros for padding."""
        zeros = torch.zeros_like(self.recurrent[0])
        rows = [self.recurrent[s] if s > 0 else zeros for s in window.start.tolist()]
        return torch.stack(rows).to(dtype)

    def write_recurrent(self, window: SlotWindow, t: int, s: torch.Tensor) -> None:
        """Store `s` [R, head, value, key], the state after token `t`; not into null slots."""
        for b, slot in enumerate(window.slots[:, t].tolist()):
            if window.live[b] and slot > 0:
                self.recurrent[slot] = s[b].to(self.recurrent.dtype)

    def read_taps(self, window: SlotWindow, width: int, dtype: torch.dtype) -> torch.Tensor:
        """[R, channel, width - 1]: the inputs just before each request's first new token."""
        taps = torch.zeros_like(self.conv[0, :, : width - 1]).repeat(len(window.slots), 1, 1)
        for b in window.live.nonzero()[:, 0].tolist():
            offset = int(window.accepted[b]) - 1
            taps[b] = self.conv[window.slots[b, 0], :, offset : offset + width - 1]
        return taps.to(dtype)

    def write_taps(self, window: SlotWindow, taps: torch.Tensor, fresh: torch.Tensor) -> None:
        """Store the two newest old inputs and all new ones, as wide as the next step may need.

        Args:
            window: the step's slots.
            taps: [R, channel, width - 1] what `read_taps` returned.
            fresh: [R, q, channel] the new raw inputs.

        Raises:
            ValueError: the window is longer than the state was allocated for.
        """
        line = torch.cat([taps[:, :, 1:], fresh.transpose(1, 2)], dim=2)  # [R, channel, width-2+q]
        if line.shape[2] > self.conv.shape[2]:
            raise ValueError(
                f"a window of {window.q} rows needs {line.shape[2]} inputs per channel; "
                f"the state has {self.conv.shape[2]}"
            )
        for b in window.live.nonzero()[:, 0].tolist():
            slot = window.slots[b, 0]
            self.conv[slot, :, : line.shape[2]] = line[b].to(self.conv.dtype)


@dataclass(frozen=True)
class KvCache:
    """The paged cache of one MLA layer on one rank.

    Attributes:
        pages: [page, token, kv_lora + rope]; its dtype is the cache format.
        q_scale: an FP8 cache's queries are stored as fp8(q / q_scale).
        k_scale: an FP8 cache's rows are stored as fp8(row / k_scale).
        interleave: consecutive tokens that one rank holds before the next rank's turn, under
            decode context parallelism.
    """

    pages: torch.Tensor
    q_scale: float = 1.0
    k_scale: float = 1.0
    interleave: int = 1

    def __post_init__(self) -> None:
        """Refuse scales that would be ignored.

        Raises:
            ValueError: a scale other than 1 on a cache that is not quantised.
        """
        if self.pages.dtype != FP8 and (self.q_scale, self.k_scale) != (1.0, 1.0):
            raise ValueError(f"a {self.pages.dtype} cache has no scales")

    def encode(self, x: torch.Tensor, scale: float) -> torch.Tensor:
        """`x` in the units and with the bits of the cache, in the dtype of `x`."""
        if self.pages.dtype != FP8:
            return x.to(self.pages.dtype).to(x.dtype)
        return to_fp8(x / scale).to(x.dtype)

    def append(self, rows: torch.Tensor, window: PageWindow, dcp: Communicator) -> None:
        """Write `rows` [M, kv_lora + rope] at their positions, where this rank holds them."""
        encoded = self.encode(rows, self.k_scale).to(self.pages.dtype)
        for row, request, position in window.live_rows():
            if position // self.interleave % dcp.size == dcp.rank:
                index = self.held(position, dcp)  # earlier tokens here = where this one goes
                page = window.block_table[request, index // self.pages.shape[1]]
                self.pages[page, index % self.pages.shape[1]] = encoded[row]

    def held(self, tokens: int, dcp: Communicator) -> int:
        """How many of a request's first `tokens` tokens this rank holds."""
        turns, rest = divmod(tokens, self.interleave * dcp.size)
        own = min(max(rest - self.interleave * dcp.rank, 0), self.interleave)
        return turns * self.interleave + own

    def read(self, table: torch.Tensor, count: int, dtype: torch.dtype) -> torch.Tensor:
        """The first `count` rows of a request with pages `table` [pages]: [count, kv_lora + rope].

        In the units of the cache: multiply by `k_scale` to have c and kr.
        """
        used = -(-count // self.pages.shape[1])
        return self.pages[table[:used].long()].to(dtype).flatten(0, 1)[:count]


def to_fp8(x: torch.Tensor) -> torch.Tensor:
    """`x` as FP8 e4m3, saturating; a NaN becomes the byte 0x7F, never the sentinel 0xFF."""
    canonical = torch.where(x.isnan(), torch.full_like(x, torch.nan), x)
    return canonical.clamp(-FP8_MAX, FP8_MAX).to(FP8)


@dataclass(frozen=True)
class CacheShape:
    """How much state a server keeps.

    Attributes:
        slots: state slots including the null slot 0.
        pages: pages of each KV cache.
        page_size: tokens per page.
        draft: draft tokens per verify window.
    """

    slots: int
    pages: int
    page_size: int
    draft: int


@dataclass(frozen=True)
class Caches:
    """The state of every layer on one rank."""

    layers: tuple[KdaState | KvCache, ...]

    def reset(self, slot: int) -> None:
        """Make `slot` ready for a new request: no state, and nothing before its first token."""
        for layer in self.layers:
            if isinstance(layer, KdaState):
                layer.recurrent[slot] = 0
                layer.conv[slot] = 0


def allocate(
    config: K3Config,
    weights: ModelWeights,
    rounding: Rounding,
    shape: CacheShape,
    kv: KvCache | None = None,
) -> Caches:
    """Zeroed caches for the heads that `weights` holds.

    Args:
        config: the model.
        weights: this rank's weights.
        rounding: gives the dtypes of the state, and of the KV cache unless `kv` does.
        shape: how much to allocate.
        kv: a cache whose format (dtype, scales, interleave) every KV cache gets.
    """
    form = kv or KvCache(torch.empty(0, dtype=rounding.stored))
    device = weights.norm.device
    layers: list[KdaState | KvCache] = []
    for layer in weights.layers:
        w = layer.attention
        if isinstance(w, KdaWeights):
            head = (len(w.b_proj), config.kda_head_dim, config.kda_head_dim)
            channels = len(w.q_conv) + len(w.k_conv) + len(w.v_conv)
            taps = config.conv_window(shape.draft)
            layers.append(
                KdaState(
                    torch.zeros(shape.slots, *head, dtype=rounding.recurrent, device=device),
                    torch.zeros(shape.slots, channels, taps, dtype=rounding.stored, device=device),
                )
            )
        else:
            size = (shape.pages, shape.page_size, config.kv_row)
            pages = torch.zeros(size, dtype=form.pages.dtype, device=device)
            layers.append(KvCache(pages, form.q_scale, form.k_scale, form.interleave))
    return Caches(tuple(layers))
