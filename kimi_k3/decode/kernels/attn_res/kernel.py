# SPDX-License-Identifier: Apache-2.0
"""The residual mix of one row by a cluster of blocks, each with a range of its columns.

    p       = bf16(prefix + delta), or prefix            stored, or stored as a block
    logit_j = (s_j . score) * rsqrt(mean(s_j^2) + eps)   s = blocks[:, :saved], then p
    m       = sum_j softmax(logit)_j s_j
    out     = bf16(m * rsqrt(mean(m^2) + eps) * norm), or bf16(m) without `norm`

| parameter | shape | dtype | holds |
|---|---|---|---|
| prefix, delta | [rows, H] | BF16 | written by earlier launches |
| mailbox to health | see `kernels.wait` | | in place of one of them: peers write it |
| blocks | [rows, room, H] | BF16 | written by earlier launches |
| saved | scalar | INT32 | how many blocks are mixed, 1 to `most`; others are not read |
| score | [H] | FP32 | weights |
| norm | [H] | BF16 | weights |
| out, prefix_out | [rows, H] | BF16 | written |
| block_out | [rows, H], `room` rows apart | BF16 | written |

Blocks from `FEW` on are left out where there are none; else, where there are fewer than the code
has registers for, the last one is loaded again and weighs nothing.

Sums go round the cluster twice, those of all sources together first. Every warp stores its own in
every block, where an mbarrier counts their bytes; every warp adds all of them up, in one order, so
that nothing is sent back and all blocks have the same bits. Lane j of the lower half of a warp
holds what is source j's.

The next launch may begin once every block has passed the wait. It waits in its turn before it reads
or writes what any launch writes, so that it only brings its weights in while this one computes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import cuda.bindings.driver as cuda
import cutlass
from cutlass import BFloat16, Float32, Int32, Int64, cute
from cutlass.cute.runtime import make_fake_stream, make_fake_tensor
from cutlass.memory import SmemAllocator

from kimi_k3.decode.kernels.attn_res.shape import (
    LANES,
    MOST_SOURCES,
    VECTOR,
    Form,
    launch_shape,
    operands,
    tiling,
)
from kimi_k3.decode.kernels.shapes import Operand, Role
from kimi_k3.decode.kernels.sync import Wait, put

FEW = 4
"""Saved blocks beyond which a row takes the way of many: less is loaded and added without them."""
UNLIKELY = -1e30
"""A logit whose weight is nothing."""
DTYPES = {"bf16": BFloat16, "fp32": Float32, "int32": Int32, "int64": Int64}


class Given(NamedTuple):
    """The operands in order; None for those that a form has not."""

    prefix: Any = None
    delta: Any = None
    mailbox: Any = None
    counter: Any = None
    exchange: Any = None
    ordinal: Any = None
    fail: Any = None
    health: Any = None
    blocks: Any = None
    saved: Any = None
    score: Any = None
    norm: Any = None
    out: Any = None
    prefix_out: Any = None
    block_out: Any = None


class Sources(NamedTuple):
    """This thread's part of what is mixed, in order."""

    few: Any
    """FP32 of the first blocks."""
    more: Any
    """BF16 of the others, None without room for any."""
    prefix: Any
    """FP32."""


class AttnRes:
    """A variant, by what it is compiled for."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        """Takes what `Form` and `tiling` take, and `eps`.

        Raises:
            ValueError: sizes that the kernel can not divide, or too many sources.
        """
        self.form, self.tiles = Form.of(parameters), tiling(parameters)
        self.form.require()
        self.tiles.require()
        self.shape = launch_shape(parameters)
        self.most, self.eps = self.form.most, parameters["eps"]

    @cute.jit
    def __call__(self, given: Given, stream: cuda.CUstream) -> None:
        """Launches one row; whoever launches the cubin says how many."""
        self.kernel(given).launch(
            grid=(self.tiles.cluster, 1, 1),
            block=(self.tiles.threads, 1, 1),
            cluster=(self.tiles.cluster, 1, 1),
            smem=self.shape.shared_bytes,
            stream=stream,
            use_pdl=True,
        )

    @cute.kernel
    def kernel(self, given: Given) -> None:
        """One block: a range of the columns of one row."""
        thread, _, _ = cute.arch.thread_idx()
        part, row, _ = cute.arch.block_idx()
        lane = thread % LANES
        slot = part * self.tiles.warps + cute.arch.make_warp_uniform(thread // LANES)
        vectors = range(self.tiles.vectors)

        shared = SmemAllocator()
        sums = shared.allocate_array(Float32, LANES * self.tiles.senders)
        squares = shared.allocate_array(Float32, LANES)
        barriers = shared.allocate_array(Int64, 2)
        if thread == 0:
            _expect(barriers, 4 * LANES * self.tiles.senders)
            _expect(barriers + 1, 4 * self.tiles.senders)
            cute.arch.mbarrier_init_fence()
        cute.arch.cluster_arrive()

        if cutlass.const_expr(self.most):
            w = [self.mine(given.score, part, thread, v).load() for v in vectors]
        if cutlass.const_expr(self.form.normed):
            g = [self.mine(given.norm, part, thread, v).load().to(Float32) for v in vectors]
        cute.arch.griddepcontrol_wait()
        cute.arch.griddepcontrol_launch_dependents()

        few = [self.block_of(given, row, j, part, thread) for j in range(min(FEW, self.most))]
        more = None
        if cutlass.const_expr(self.most > FEW):
            more = self.more_blocks(given, row, part, thread)
        own = self.prefix_of(given, row, part, thread)
        self.store(given.prefix_out, own, row, part, thread)
        self.store(given.block_out, own, row, part, thread)
        sources = Sources([_wide(block) for block in few], more, _wide(own))

        cute.arch.cluster_wait()  # every block's barriers expect what is sent to them
        mixed = sources.prefix
        if cutlass.const_expr(self.most):
            total = self.sums_of(sources, w, lane, given.saved)
            for block in range(self.tiles.cluster):
                put(sums + (slot * LANES + lane), total, barriers, block)
            cute.arch.mbarrier_wait(barriers, 0)
            alpha = self.softmax(sums, lane, given.saved)
            mixed = self.mix_of(sources, alpha, given.saved)
        if cutlass.const_expr(self.form.normed):
            scale = self.scale_of(mixed, lane, slot, squares, barriers + 1)
            mixed = [mixed[v] * scale * g[v] for v in vectors]
        self.store(given.out, [value.to(BFloat16) for value in mixed], row, part, thread)

    def mine(self, values: cute.Tensor, part: Any, thread: Any, vector: int) -> cute.Tensor:
        """This thread's `vector`-th 16 bytes of a row of BF16 (32 of FP32)."""
        first = part * (self.tiles.threads * self.tiles.vectors) + vector * self.tiles.threads
        return cute.zipped_divide(values, (VECTOR,))[None, first + thread]

    def block_of(self, given: Given, row: Any, index: int, part: Any, thread: Any) -> list[Any]:
        """This thread's part of a saved block, of the last one where there are not so many."""
        block = given.blocks[row, cutlass.min(Int32(index), given.saved - 1), None]
        return [self.mine(block, part, thread, v).load() for v in range(self.tiles.vectors)]

    def store(
        self, rows: cute.Tensor | None, values: Sequence[Any], row: Any, part: Any, thread: Any
    ) -> None:
        """Stores this thread's part of a row, where there is something to store it in."""
        if rows is not None:
            for v, value in enumerate(values):
                self.mine(rows[row, None], part, thread, v).store(value)

    def prefix_of(self, given: Given, row: Any, part: Any, thread: Any) -> list[Any]:
        """This thread's part of the new prefix."""
        vectors = range(self.tiles.vectors)

        def plain(rows: cute.Tensor) -> list[Any]:
            return [self.mine(rows[row, None], part, thread, v).load() for v in vectors]

        if self.form.arrives == "prefix":
            return self.arrived(given, row, part, thread)
        own = plain(given.prefix)
        if not self.form.delta:
            return own
        waits = self.form.arrives == "delta"
        more = self.arrived(given, row, part, thread) if waits else plain(given.delta)
        return [(own[v].to(Float32) + more[v].to(Float32)).to(BFloat16) for v in vectors]

    def arrived(self, given: Given, row: Any, part: Any, thread: Any) -> list[Any]:
        """This thread's part of the row that a mailbox brings."""
        wait = Wait(given.counter, given.exchange, given.ordinal, given.fail, given.health)
        words = given.mailbox[wait.parity, row, None]
        found = []
        for v in range(self.tiles.vectors):
            first = part * (self.tiles.threads * self.tiles.vectors) + v * self.tiles.threads
            found.append(wait.take_bf16(words.iterator + (first + thread) * (VECTOR // 2)))
        return found

    @cute.jit
    def more_blocks(self, given: Given, row: Any, part: Any, thread: Any) -> Any:
        """This thread's part of the blocks from `FEW` on, zeros where there are none."""
        nothing = cute.full((VECTOR,), 0, BFloat16).reshape(((VECTOR,),))
        more = [[nothing for _ in range(self.tiles.vectors)] for _ in range(FEW, self.most)]
        if given.saved > FEW:
            more = [self.block_of(given, row, j, part, thread) for j in range(FEW, self.most)]
        return more

    def sums_of(self, sources: Sources, w: Sequence[Any], lane: Any, saved: Any) -> Any:
        """Lane j's of this warp's sums: (s . score) of source j, in the upper half (s . s)."""
        few = sources.few
        dots, squares = [_dot(x, w) for x in few], [_dot(x, x) for x in few]
        if self.most > FEW:
            more_dots, more_squares = self.more_sums(sources.more, w, saved)
            dots, squares = [*dots, *more_dots], [*squares, *more_squares]
        p = sources.prefix
        empty = [Float32(0.0)] * (MOST_SOURCES - 1 - self.most)
        return _sums_by_lane([*dots, _dot(p, w), *empty, *squares, _dot(p, p), *empty], lane)

    def mix_of(self, sources: Sources, alpha: Any, saved: Any) -> list[Any]:
        """The sources' sum in their order, by the shares that the lanes hold."""
        weights = [cute.arch.shuffle_sync(alpha, j) for j in range(self.most + 1)]
        mixed = [value * weights[0] for value in sources.few[0]]
        mixed = _added(mixed, sources.few[1:], weights[1:])
        if self.most > FEW:
            mixed = self.more_added(mixed, sources.more, weights[FEW:], saved)
        return _added(mixed, [sources.prefix], weights[self.most :])

    @cute.jit
    def more_sums(self, more: Any, w: Any, saved: Any) -> Any:
        """The products of these blocks with the score, and with themselves."""
        dots = [Float32(0.0) for _ in more]
        squares = [Float32(0.0) for _ in more]
        if saved > FEW:
            f = [_wide(block) for block in more]
            dots = [_dot(x, w) for x in f]
            squares = [_dot(x, x) for x in f]
        return dots, squares

    @cute.jit
    def more_added(self, mixed: Any, more: Any, weights: Any, saved: Any) -> Any:
        """The mix with these blocks' shares."""
        if saved > FEW:
            mixed = _added(mixed, [_wide(block) for block in more], weights)
        return mixed

    def softmax(self, sums: cute.Pointer, lane: Any, saved: Any) -> Any:
        """Lane j's share of source j in the mix, 0 for lanes without one that counts."""
        received = cute.make_tensor(
            sums, cute.make_layout((self.tiles.senders, LANES), stride=(LANES, 1))
        )
        total = Float32(0.0)
        for sender in range(self.tiles.senders):
            total = total + received[sender, lane]
        square = cute.arch.shuffle_sync_bfly(total, MOST_SOURCES)
        logit = total * cute.math.rsqrt(
            square * (1.0 / self.tiles.hidden) + self.eps, fastmath=True
        )
        held = (lane < saved) | (lane == self.most)
        logit = cutlass.select_(held, logit, Float32(UNLIKELY))
        top = logit
        for step in (8, 4, 2, 1):
            top = cutlass.max(top, cute.arch.shuffle_sync_bfly(top, step))
        weight = cutlass.select_(held, cute.math.exp(logit - top, fastmath=True), Float32(0.0))
        total = weight
        for step in (8, 4, 2, 1):
            total = total + cute.arch.shuffle_sync_bfly(total, step)
        return weight * (1.0 / total)

    @cute.jit
    def scale_of(
        self, mixed: Sequence[Any], lane: Any, slot: Any, squares: cute.Pointer, barrier: Any
    ) -> Any:
        """What norms the mix, from every block's squares of it."""
        square = _over_warp(_dot(mixed, mixed))
        if lane < self.tiles.cluster:
            put(squares + slot, square, barrier, lane)
        cute.arch.mbarrier_wait(barrier, 0)
        total = Float32(0.0)
        if lane < self.tiles.senders:
            total = squares[lane]
        mean = _over_warp(total) * (1.0 / self.tiles.hidden)
        return cute.math.rsqrt(mean + self.eps, fastmath=True)


def _wide(values: Sequence[Any]) -> list[Any]:
    return [value.to(Float32) for value in values]


def _added(mixed: Sequence[Any], f: Sequence[Sequence[Any]], weights: Sequence[Any]) -> list[Any]:
    """The mix with some sources' shares, in their order; there may be more weights."""
    for source, weight in zip(f, weights, strict=False):
        mixed = [m + value * weight for m, value in zip(mixed, source, strict=True)]
    return [*mixed]


def _dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    """Of all of this thread's elements."""
    total = Float32(0.0)
    for left, right in zip(a, b, strict=True):
        for e in range(VECTOR):
            total = total + left[e] * right[e]
    return total


def _expect(barrier: cute.Pointer, count: int) -> None:
    """Makes an mbarrier that is complete when `count` bytes have come."""
    cute.arch.mbarrier_init(barrier, 1)
    cute.arch.mbarrier_arrive_and_expect_tx(barrier, count)


def _over_warp(value: Any) -> Any:
    for step in (16, 8, 4, 2, 1):
        value = value + cute.arch.shuffle_sync_bfly(value, step)
    return value


def _sums_by_lane(values: Sequence[Any], lane: Any) -> Any:
    """Lane j's sum over the warp of its 32 `values`' j-th: half as many of them in each step."""
    step = LANES // 2
    while step:
        half, upper = len(values) // 2, (lane & step) != 0
        values = [
            cutlass.select_(upper, high, low)
            + cute.arch.shuffle_sync_bfly(cutlass.select_(upper, low, high), step)
            for low, high in zip(values[:half], values[half:], strict=True)
        ]
        step //= 2
    return values[0]


def compiled(parameters: Mapping[str, Any]) -> tuple[AttnRes, tuple[Any, ...]]:
    """The kernel of a variant, and the fake operands that it is compiled with.

    Args:
        parameters: of its row of the table.
    """
    given = Given(**{one.name: _fake(one) for one in operands(parameters)})
    return AttnRes(parameters), (given, make_fake_stream())


def _fake(operand: Operand) -> Any:
    dtype = DTYPES[operand.dtype]
    if operand.role is Role.SCALAR:
        return dtype(operand.low)
    return make_fake_tensor(dtype, operand.shape, operand.strides, assumed_align=16)
