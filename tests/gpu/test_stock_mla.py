# SPDX-License-Identifier: Apache-2.0
"""The MLA kernels against float64 and the reference's cache, from the kernels' own inputs."""

from dataclasses import dataclass

import pytest
import torch

from kimi_k3.reference.state import FP8, KvCache, to_fp8
from kimi_k3.stock.cuda.mla import (
    LOG2_E,
    MOST_SPLITS,
    Workspace,
    attend,
    gate_values,
    splits_for,
    tile_for,
)
from kimi_k3.stock.cuda.mla_insert import WHOLE, Shard, insert
from tests.gpu.packed_oracle import (
    ADDITION,
    DEVICE,
    ON_GPU,
    POISONS,
    ROUNDING,
    bf16,
    int32,
    launch,
    normal,
    summation_error,
)

EMPTY_LSE = -1.0e30
K_SCALE, Q_SCALE = 0.5, 0.25


@dataclass(frozen=True)
class Heads:
    """Heads of a rank, widths of a cached row, tokens of a page."""

    heads: int
    latent: int
    extra: int
    page: int

    @property
    def row(self) -> int:
        return self.latent + self.extra


TP8, TP16, DCP = Heads(12, 512, 64, 64), Heads(6, 512, 64, 64), Heads(96, 512, 64, 16)
MINI, TINY = Heads(8, 64, 16, 16), Heads(4, 32, 8, 16)
SHAPES = (TP8, TP16, DCP, MINI, TINY) if ON_GPU else (MINI, TINY)
LONGEST = 4097 if ON_GPU else 70
POOL = 60_000 if ON_GPU else 40  # pages; x 64 x 576 elements is past 2^31
FORMATS = pytest.mark.parametrize("dtype", [torch.bfloat16, FP8], ids=["bf16", "fp8"])


def lengths_for(shape: Heads, q: int) -> list[int]:
    """Padding, the shortest, both sides of a page's end, and a long one."""
    page = shape.page
    return [0, q, page - 1 + q, page, page + 1, 2 * page, max(LONGEST, q), 0]


def shuffled_table(lengths: list[int], page: int, pool: int) -> torch.Tensor:
    """Pages of each request, no page twice, from a pool in random order; page 0 is never used."""
    per_request = [-(-length // page) for length in lengths]
    order = torch.randperm(pool - 1, generator=torch.Generator().manual_seed(7)) + 1
    table = torch.zeros(len(lengths), max(per_request) + 1, dtype=torch.int64)
    start = 0
    for request, count in enumerate(per_request):
        table[request, :count] = order[start : start + count]
        start += count
    return table


def scales(dtype: torch.dtype) -> tuple[float, float]:
    return (Q_SCALE, K_SCALE) if dtype == FP8 else (1.0, 1.0)


def filled_cache(
    shape: Heads, lengths: list[int], table: torch.Tensor, dtype: torch.dtype
) -> torch.Tensor:
    """Pages whose addressed rows are normal numbers and all others NaN."""
    used = [-(-length // shape.page) for length in lengths]
    pool = sum(used) + 8
    pages = torch.full((pool, shape.page, shape.row), torch.nan, device=DEVICE)
    for request, length in enumerate(lengths):
        where = torch.arange(length)
        page = table[request, where // shape.page].to(DEVICE)
        values = normal(request, length, shape.row, scale=1.5).float()
        pages[page, (where % shape.page).to(DEVICE)] = values
    return to_fp8(pages) if dtype == FP8 else pages.to(dtype)


def check_attention(
    shape: Heads,
    query: torch.Tensor,
    cache: KvCache,
    table: torch.Tensor,
    lengths: list[int],
    q: int,
    scale: float,
    shard: Shard,
    z: torch.Tensor,
    lse: torch.Tensor,
) -> None:
    """Every row against float64 over the keys that the reference reads.

    Errors: FP32 sums of the scores; probabilities rounded to BF16 or FP16; FP32 sums of z and one
    rounding of it. A score that errs by e moves a probability by 2 e.
    """
    coded = cache.encode(query.float().cpu(), cache.q_scale).double().to(DEVICE)
    in_cache_units = scale * cache.q_scale * cache.k_scale
    p_error = 2.0**-11 if cache.pages.dtype == FP8 and ON_GPU else ROUNDING
    for request, length in enumerate(lengths):
        for t in range(q):
            m = request * q + t
            seen = cache.held(length - q + t + 1, shard) if length else 0
            if seen == 0:
                assert bool((z[m] == 0).all())
                assert bool((lse[m] == EMPTY_LSE).all())
                continue
            keys = cache.read(table[request], seen, torch.float64).to(DEVICE)
            scores = in_cache_units * (coded[m] @ keys.T)  # [h, n]
            sizes = in_cache_units * (coded[m].abs() @ keys.abs().T)
            wrong = (summation_error(sizes, shape.row) + scores.abs() * 2.0**-21).amax(1)  # [h]
            p, c = torch.softmax(scores, 1), keys[:, : shape.latent] * cache.k_scale
            exact, size = p @ c, p @ c.abs()
            share = p_error + 2 * wrong + 2 * ADDITION * (seen / 16 + 16)
            bound = size * share[:, None] + ROUNDING * exact.abs()
            assert bool(((z[m].double() - exact).abs() <= bound).all())
            log = torch.logsumexp(scores, 1) * LOG2_E
            slack = 2 * wrong + 2.0**-18 + log.abs() * 2.0**-21
            assert bool(((lse[m].double() - log).abs() <= slack).all())


def run_attention(
    shape: Heads,
    q: int,
    dtype: torch.dtype,
    splits: int,
    shard: Shard = WHOLE,
) -> None:
    lengths = lengths_for(shape, q)
    table = shuffled_table(lengths, shape.page, sum(-(-n // shape.page) for n in lengths) + 8)
    q_scale, k_scale = scales(dtype)
    cache = KvCache(filled_cache(shape, lengths, table, dtype), q_scale, k_scale, shard.interleave)
    m = len(lengths) * q
    query = normal(3, m, shape.heads, shape.row, scale=0.5)
    query[:q] = torch.nan  # padding
    z = torch.full((m, shape.heads, shape.latent), POISONS[0], device=DEVICE).bfloat16()
    lse = torch.full((m, shape.heads), POISONS[0], device=DEVICE)
    workspace = Workspace.empty(splits, query, cache.pages, shape.latent)
    workspace.z.fill_(torch.nan)
    scale, device_table, device_lengths = shape.row**-0.5, int32(table), int32(lengths)

    def kernels() -> None:
        attend(
            query,
            cache.pages,
            device_table,
            device_lengths,
            q,
            z,
            lse,
            workspace,
            scale=scale,
            q_scale=q_scale,
            k_scale=k_scale,
            shard=shard,
        )

    launch(kernels, [z, lse])
    cache = KvCache(cache.pages.cpu(), q_scale, k_scale, shard.interleave)
    check_attention(shape, query, cache, table, lengths, q, scale, shard, z, lse)


@FORMATS
@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize("q", [1, 2, 8] if ON_GPU else [1, 3])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_attention_is_right_at_every_length(
    shape: Heads, q: int, splits: int, dtype: torch.dtype
) -> None:
    run_attention(shape, q, dtype, splits)


@FORMATS
def test_many_splits_and_packed_heads_merge_to_the_same(dtype: torch.dtype) -> None:
    run_attention(SHAPES[0], 8 if ON_GPU else 3, dtype, splits=66 if ON_GPU else 5)


@FORMATS
@pytest.mark.parametrize(
    "shard", [Shard(2, 0, 1), Shard(2, 1, 1), Shard(4, 3, 16)], ids=["even", "odd", "runs"]
)
def test_a_shard_attends_to_what_it_holds(shard: Shard, dtype: torch.dtype) -> None:
    run_attention(SHAPES[-2], 2, dtype, splits=2, shard=shard)


@dataclass(frozen=True)
class Insertion:
    """Inputs of one insertion."""

    projected: torch.Tensor
    qa_norm: torch.Tensor
    c_norm: torch.Tensor
    qa: torch.Tensor
    pages: torch.Tensor
    table: torch.Tensor
    lengths: list[int]

    @classmethod
    def random(
        cls, shape: Heads, q_rank: int, lengths: list[int], q: int, dtype: torch.dtype, pool: int
    ) -> "Insertion":
        m = len(lengths) * q
        wide = normal(1, m, q_rank + shape.row + 24, scale=3.0)
        wide[-1, q_rank + shape.latent] = torch.nan  # an extra column of the last live row
        pages = torch.empty(pool, shape.page, shape.row, dtype=dtype, device=DEVICE)
        table = shuffled_table(lengths, shape.page, pool)
        for page in [0, *table.flatten().tolist()]:
            pages.view(torch.uint8)[page] = 0x42
        return cls(
            wide,
            normal(2, q_rank),
            normal(3, shape.latent),
            torch.full((m, q_rank), POISONS[0], device=DEVICE).bfloat16(),
            pages,
            table,
            lengths,
        )


def near_norms(x: torch.Tensor, weight: torch.Tensor, eps: float) -> list[torch.Tensor]:
    """The BF16 values that an RMS norm computed to within 2^-20 may round to."""
    wide = x.double()
    exact = wide * torch.rsqrt((wide * wide).mean(-1, keepdim=True) + eps) * weight.double()
    return [bf16(exact * (1 + side * 2.0**-20)) for side in (-1, 0, 1)]


def same(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a == b) | (a.isnan() & b.isnan())


INSERT_SHAPES = [(shape, 1536 if shape.latent == 512 else 48) for shape in SHAPES]


@FORMATS
@pytest.mark.parametrize(
    "shard", [WHOLE, Shard(2, 1, 1), Shard(2, 0, 16)], ids=["whole", "odd", "runs"]
)
@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize(("shape", "q_rank"), INSERT_SHAPES, ids=str)
def test_rows_are_normed_and_inserted_where_the_reference_puts_them(
    shape: Heads, q_rank: int, q: int, shard: Shard, dtype: torch.dtype
) -> None:
    lengths = [*lengths_for(shape, q), shape.page * 3]
    pool = POOL if (shape, q, shard) == (SHAPES[0], 1, WHOLE) else 40 + 4200 // shape.page
    case = Insertion.random(shape, q_rank, lengths, q, dtype, pool)
    device_table, device_lengths, eps = int32(case.table), int32(lengths), 1e-5
    k_scale = scales(dtype)[1]
    launch(
        lambda: insert(
            case.projected,
            case.qa_norm,
            case.c_norm,
            case.qa,
            case.pages,
            device_table,
            device_lengths,
            q,
            eps=eps,
            k_scale=k_scale,
            shard=shard,
        ),
        [case.qa],
    )
    qa, c, kr, _ = case.projected.split([q_rank, shape.latent, shape.extra, 24], dim=1)
    qa_values = case.qa.double()
    assert bool(sum(same(qa_values, near) for near in near_norms(qa, case.qa_norm, eps)).all())
    near_rows = [torch.cat([near, kr.double()], 1) for near in near_norms(c, case.c_norm, eps)]
    if dtype == FP8:
        near_rows = [to_fp8(row.float() / k_scale).double() for row in near_rows]
    cache = KvCache(case.pages, *scales(dtype), shard.interleave)
    written: dict[int, set[int]] = {}
    for m in range(len(lengths) * q):
        position = lengths[m // q] - q + m % q
        if lengths[m // q] == 0 or position // shard.interleave % shard.size != shard.rank:
            continue
        index = cache.held(position, shard)
        page = int(case.table[m // q, index // shape.page])
        written.setdefault(page, set()).add(index % shape.page)
        stored = case.pages[page, index % shape.page]
        assert bool(sum(same(stored.double(), near[m]) for near in near_rows).all())
        if dtype == FP8:
            assert not bool((stored.view(torch.uint8) == 0xFF).any())
    for page in {0, *case.table.flatten().tolist()}:
        kept = [token for token in range(shape.page) if token not in written.get(page, set())]
        assert bool((case.pages[page].view(torch.uint8)[kept] == 0x42).all())


def test_an_fp8_row_saturates_and_keeps_nan_canonical() -> None:
    shape, q_rank = SHAPES[-1], 48
    case = Insertion.random(shape, q_rank, [1], 1, FP8, 40)
    values = [1e9, -1e9, float("inf"), -0.0, 2.0**-10, 0.75 * 2.0**-9, 464.0, -float("nan")]
    case.projected[0, q_rank + shape.latent : q_rank + shape.row] = torch.tensor(values)
    table, lengths = int32(case.table), int32([1])
    insert(
        case.projected, case.qa_norm, case.c_norm, case.qa, case.pages, table, lengths, 1, eps=1e-5
    )
    stored = case.pages[int(case.table[0, 0]), 0, shape.latent :].view(torch.uint8).tolist()
    want = [0x7E, 0xFE, 0x7E, 0x80, 0, 1, 0x7E, 0x7F]
    assert stored[: len(want)] == want


@pytest.mark.parametrize("by_head", [False, True])
@pytest.mark.parametrize(("heads", "value"), [(12, 128), (6, 128), (4, 16)])
def test_the_gate_multiplies_live_rows_and_selects_zero_for_padding(
    heads: int, value: int, by_head: bool
) -> None:
    q, lengths = 2, int32([3, 0, 9])
    o = normal(1, heads, 6, value).transpose(0, 1) if by_head else normal(1, 6, heads, value)
    wide = normal(2, 6, heads * value + 40, scale=4.0)
    gate = wide[:, 40:]
    o[2:4], wide[2:4] = torch.nan, torch.nan
    out = torch.full((6, heads * value), POISONS[0], device=DEVICE).bfloat16()
    launch(lambda: gate_values(o, gate, lengths, q, out), [out])
    exact = o.double().flatten(1) * torch.sigmoid(gate.double())
    live = torch.tensor([0, 1, 4, 5], device=DEVICE)
    error = (out[live].double() - exact[live]).abs()
    assert bool((error <= (ROUNDING + 2.0**-18) * exact[live].abs()).all())
    assert bool((out[2:4] == 0).all())


@pytest.mark.parametrize(
    ("requests", "pairs", "context", "want"),
    [
        (1, 12, 131072, MOST_SPLITS),
        (8, 12, 8192, 33),
        (64, 12, 131072, 4),
        (64, 96, 131072, 1),
        (1, 96, 8192, 66),
        (1, 12, 64, 1),
        (1, 12, 65, 2),
    ],
)
def test_splits_fill_the_device_without_runs_of_a_few_keys(
    requests: int, pairs: int, context: int, want: int
) -> None:
    assert splits_for(requests, pairs, context, multiprocessors=132) == want


def test_a_tile_holds_all_pairs_or_is_the_largest() -> None:
    assert [tile_for(pairs).rows for pairs in (1, 16, 17, 32, 33, 96)] == [16, 16, 32, 32, 64, 64]
