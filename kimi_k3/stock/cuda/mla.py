# SPDX-License-Identifier: Apache-2.0
"""The absorbed MLA decode core over a paged cache, split over keys; and its output gate.

Spec 2.5 and 3.3, rounding of the stock column of spec 2.8:

    score_j = scale * ( query . row_j )            j below what the row may see
    z       = bf16( sum_j softmax(score)_j c_j )   lse = log2 of the softmax's denominator
    gated   = bf16( o * sigmoid(gate) )

Scores, maxima and sums are FP32 in the log2 domain; probabilities enter the second product in
BF16 (FP16 with an FP8 cache, whose values FP16 holds exactly). With an FP8 cache the query is
fp8(query / q_scale) and the scales return in `scale` and in z.

A program owns one run of a request's keys for `rows` packed (token, head) pairs, so that the q
tokens and all heads share each read of a key. How many runs there are follows from the step's
shape on the host; how long they are follows from the request's length on the device. A second
kernel merges the runs in a fixed order. A run without keys leaves lse = -1e30 and nothing else.

A row's z is NaN if any key of its request in the same tile is NaN, also one that it may not see:
the keys of one verify window meet in one product. Other requests are never affected.
"""

from dataclasses import dataclass

import torch
import triton

from kimi_k3.stock.cuda.mla_insert import WHOLE, Shard
from kimi_k3.stock.cuda.mla_kernels import core_kernel, encode_kernel, gate_kernel, merge_kernel

LOG2_E = 1.4426950408889634
LEAST_KEYS_OF_A_SPLIT = 64
MOST_SPLITS = 128
"""What one program of the merge reads of a column: 128 partial sums."""


@dataclass(frozen=True)
class CoreTile:
    """Sizes of one program of the core.

    Attributes:
        rows: packed (token, head) pairs.
        keys: keys of one iteration.
        warps: warps of a program.
        stages: iterations in flight.
        resident: programs that one multiprocessor holds at once, from their shared memory.
    """

    rows: int
    keys: int
    warps: int
    stages: int
    resident: int


TILES = (
    CoreTile(rows=16, keys=32, warps=4, stages=5, resident=2),
    CoreTile(rows=32, keys=32, warps=8, stages=5, resident=1),
    CoreTile(rows=64, keys=32, warps=8, stages=5, resident=1),
)
"""Five stages hold two tiles of keys in flight: a key's address waits for the block table."""


def tile_for(pairs: int) -> CoreTile:
    """The smallest tile that holds a request's q h pairs, or the largest."""
    return next((tile for tile in TILES if pairs <= tile.rows), TILES[-1])


def splits_for(requests: int, pairs: int, context: int, multiprocessors: int) -> int:
    """Into how many runs the keys are cut: what fills the device, but no runs of a few keys.

    Args:
        requests: of the step, padding included.
        pairs: q h of one request.
        context: longest context that the launch serves, in tokens that this rank holds.
        multiprocessors: of the device.
    """
    tile = tile_for(pairs)
    programs = requests * -(-pairs // tile.rows)
    wanted = multiprocessors * tile.resident // programs
    return max(1, min(wanted, -(-context // LEAST_KEYS_OF_A_SPLIT), MOST_SPLITS))


@dataclass(frozen=True)
class Workspace:
    """Partial results of the splits, and the query as an FP8 cache has it.

    Attributes:
        z: [splits, M, h, C] FP32; empty for a single split.
        lse: [splits, M, h] FP32; empty for a single split.
        query: [M, h, C + R] FP16 with values of e4m3; empty for a BF16 cache.
        splits: runs of each request's keys.
    """

    z: torch.Tensor
    lse: torch.Tensor
    query: torch.Tensor
    splits: int

    @classmethod
    def empty(cls, splits: int, query: torch.Tensor, pages: torch.Tensor, c: int) -> "Workspace":
        """Memory for steps with queries like `query` [M, h, C + R] and that cache; C is `c`."""
        rows, heads, width = query.shape
        kept = splits if splits > 1 else 0
        coded = rows if pages.dtype == torch.float8_e4m3fn else 0
        return cls(
            torch.empty(kept, rows, heads, c, device=query.device),
            torch.empty(kept, rows, heads, device=query.device),
            torch.empty(coded, heads, width, dtype=torch.float16, device=query.device),
            splits,
        )


def attend(
    query: torch.Tensor,
    pages: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
    q: int,
    z: torch.Tensor,
    lse: torch.Tensor,
    workspace: Workspace,
    *,
    scale: float,
    q_scale: float = 1.0,
    k_scale: float = 1.0,
    shard: Shard = WHOLE,
) -> None:
    """Attention of every row over what this rank holds of its request.

    One launch, one more to merge several splits, and one more to quantise the query for an FP8
    cache: inside the core it would stay in registers, and large tiles would spill.

    Moves each held key's C + R elements once per `rows` packed pairs (later reads come out of L2),
    and 8 splits M h C bytes
    of partial sums.

    Args:
        query: [M, h, C + R] BF16, contiguous.
        pages: [pages, page_size, C + R] BF16 or float8_e4m3fn, contiguous.
        block_table: [R, P] int32, rows may be strided.
        lengths: [R] int32 tokens including the q new ones, 0 for padding.
        q: rows per request, M = R q.
        z: [M, h, C] BF16, contiguous, written; zero for rows without keys.
        lse: [M, h] FP32, contiguous, written; -1e30 for rows without keys.
        workspace: `Workspace.empty(splits_for(...), query, pages, C)`.
        scale: of the scores, without the cache's scales.
        q_scale: of the queries to an FP8 cache.
        k_scale: of an FP8 cache.
        shard: which tokens are this rank's.

    Raises:
        ValueError: sizes that do not fit.
    """
    (m, heads, latent), row = z.shape, pages.shape[2]
    requests = len(lengths)
    if query.shape != (m, heads, row) or requests * q != m or lse.shape != (m, heads):
        raise ValueError(
            f"query {tuple(query.shape)}, lse {tuple(lse.shape)}, {requests} requests of {q} rows "
            f"for z {tuple(z.shape)}"
        )
    fp8 = pages.dtype == torch.float8_e4m3fn
    tile, splits = tile_for(q * heads), workspace.splits
    parts = (z, lse) if splits == 1 else (workspace.z, workspace.lse)
    if fp8:
        encode_kernel[(triton.cdiv(query.numel(), 1024),)](
            query, workspace.query, q_scale, query.numel(), COMPILED=z.is_cuda, num_warps=4
        )
    core_kernel[(triton.cdiv(q * heads, tile.rows), splits, requests)](
        workspace.query if fp8 else query,
        pages.view(torch.uint8) if fp8 else pages,
        block_table,
        block_table.stride(0),
        lengths,
        *parts,
        m * heads,
        scale * q_scale * k_scale * LOG2_E,
        k_scale,
        T=q,
        HEADS=heads,
        C=latent,
        R=row - latent,
        C_PADDED=max(16, triton.next_power_of_2(latent)),
        R_PADDED=max(16, triton.next_power_of_2(row - latent)),
        PAGE=pages.shape[1],
        SPLITS=splits,
        ROWS=tile.rows,
        KEYS=tile.keys,
        STAGES=tile.stages,
        SIZE=shard.size,
        RANK=shard.rank,
        INTERLEAVE=shard.interleave,
        FP8=fp8,
        COMPILED=z.is_cuda,
        num_warps=tile.warps,
    )
    if splits > 1:
        _merge(workspace, z, lse)


def _merge(workspace: Workspace, z: torch.Tensor, lse: torch.Tensor) -> None:
    m, heads, latent = z.shape
    block = min(64, triton.next_power_of_2(latent))
    merge_kernel[(m * heads, triton.cdiv(latent, block))](
        workspace.z,
        workspace.lse,
        z,
        lse,
        m * heads,
        C=latent,
        SPLITS=workspace.splits,
        SPLITS_PADDED=triton.next_power_of_2(workspace.splits),
        BLOCK=block,
        num_warps=4 if workspace.splits > 16 else 1,
    )


def gate_values(
    o: torch.Tensor, gate: torch.Tensor, lengths: torch.Tensor, q: int, out: torch.Tensor
) -> None:
    """bf16(o * sigmoid(gate)), selected to zero for padding rows.

    Moves 4 M h v bytes in and 2 M h v out.

    Args:
        o: [M, h, v] BF16, last axis contiguous (the batched product may leave [h, M, v]).
        gate: [M, h v] BF16, rows may be strided.
        lengths: [R] int32, 0 for padding.
        q: rows per request, M = R q.
        out: [M, h v] BF16, contiguous, written.
    """
    m, heads, value = o.shape
    width = heads * value
    block = min(512, triton.next_power_of_2(width))
    gate_kernel[(m, triton.cdiv(width, block))](
        o,
        o.stride(0),
        o.stride(1),
        gate,
        gate.stride(0),
        lengths,
        out,
        q,
        V=value,
        WIDTH=width,
        BLOCK=block,
        num_warps=2,
    )
