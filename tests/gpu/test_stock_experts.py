# SPDX-License-Identifier: Apache-2.0
"""The routed experts' kernels against float64, stage by stage, from the kernels' own inputs."""

import itertools
from collections.abc import Callable

import pytest
import torch
import triton.language as tl

from kimi_k3.stock.cuda.expert_copies import COPIED_BYTES, COPIED_DEPTH, can_copy
from kimi_k3.stock.cuda.expert_plan import ExpertPlan, plan_pairs, plan_sorted
from kimi_k3.stock.cuda.expert_sum import down_sum, weighted_sum
from kimi_k3.stock.cuda.expert_tiles import (
    LEAST_COLUMNS,
    ONE_WAVE,
    PAIR_TOKENS,
    TABLE,
    Tile,
    Tiles,
    tiles_for,
)
from kimi_k3.stock.cuda.experts import down, gate_up, has_wide_scales
from kimi_k3.weights import ExpertWeights
from tests.gpu.packed_oracle import (
    DEVICE,
    MINI,
    ODD,
    ON_GPU,
    POISONS,
    SHAPES,
    Experts,
    down_rows,
    hidden_bounds,
    int32,
    launch,
    normal,
    random_experts,
    routing,
    weighted_rows,
)

ROWS = (2, 3, 8, 17, 64) if ON_GPU else (3, 9)
KINDS = ("random", "equal", "skewed")


def poisoned(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.full(shape, POISONS[0], dtype=dtype, device=DEVICE)


@pytest.fixture(scope="module")
def weights() -> dict[Experts, ExpertWeights]:
    return {shape: random_experts(shape, seed=index) for index, shape in enumerate(SHAPES)}


def decode_plan(ids: torch.Tensor, lengths: torch.Tensor, q: int, tiles: Tiles) -> ExpertPlan:
    """What a step of more than a few rows does."""
    plan = ExpertPlan.empty(ids.numel(), tiles.tokens, DEVICE)
    plan_pairs(ids, lengths, q, plan)
    return plan


def planned_tiles(rows: int, columns: int) -> Tiles:
    """The candidates for such a step that are not by pair."""
    tiles = tiles_for(rows, columns)
    return tiles_for(3, columns) if tiles.by_pair else tiles


def check_hidden(
    shape: Experts, w: ExpertWeights, ids: torch.Tensor, z: torch.Tensor, hidden: torch.Tensor
) -> None:
    low, high = hidden_bounds(shape, w, ids, z)
    live = hidden[:, : shape.live].double()
    assert bool(((low <= live) & (live <= high)).all())


def check_rows(
    shape: Experts, w: ExpertWeights, ids: torch.Tensor, hidden: torch.Tensor, rows: torch.Tensor
) -> None:
    exact, bound = down_rows(shape, w, ids, hidden)
    assert bool(((rows.double() - exact).abs() <= bound).all())


def compute(
    shape: Experts,
    w: ExpertWeights,
    plan: ExpertPlan,
    z: torch.Tensor,
    tiles: tuple[Tile, Tile],
    wide: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Both products over poisoned outputs; what the plan has no pair for stays poisoned."""
    hidden = poisoned(len(z) * shape.k, shape.width)
    rows = poisoned(len(z) * shape.k, shape.latent)

    def kernels() -> None:
        gate_up(
            z,
            w,
            plan,
            hidden,
            tiles[0],
            live=shape.live,
            beta=4.0,
            linear_beta=25.0,
            wide=wide,
        )
        down(hidden, w, plan, rows, tiles[1], live=shape.live, wide=wide)

    launch(kernels, [hidden, rows])
    return hidden, rows


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", ROWS)
def test_both_products_are_right_for_every_routing(
    weights: dict[Experts, ExpertWeights], m: int, kind: str, shape: Experts
) -> None:
    w, z = weights[shape], normal(m, m, shape.latent)
    ids = routing(kind, m, shape, seed=m)
    tiles = planned_tiles(m, shape.live)
    plan = decode_plan(ids, int32([9] * m), 1, tiles)
    hidden, rows = compute(shape, w, plan, z, (tiles.gate_up[0], tiles.down[0]))
    check_hidden(shape, w, ids, z, hidden)
    check_rows(shape, w, ids, hidden, rows)


def pairs_of(tiles: Tiles) -> list[tuple[Tile, Tile]]:
    """Every candidate at least once."""
    longest = itertools.zip_longest(tiles.gate_up, tiles.down)
    return [(a or tiles.gate_up[0], b or tiles.down[0]) for a, b in longest]


CANDIDATES = [
    pytest.param(tiles, *tile_pair, id=f"{tiles.most_rows}-{tiles.most_columns}-{index}")
    for tiles in TABLE
    if not tiles.by_pair
    for index, tile_pair in enumerate(pairs_of(tiles))
]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("tiles", "first", "second"), CANDIDATES)
def test_every_candidate_computes_the_same_function(
    weights: dict[Experts, ExpertWeights], tiles: Tiles, first: Tile, second: Tile, wide: bool
) -> None:
    shape = SHAPES[0] if ON_GPU else MINI
    m = min(tiles.most_rows, 24 if ON_GPU else 3)
    w, z, ids = weights[shape], normal(5, m, shape.latent), routing("skewed", m, shape, seed=5)
    plan = decode_plan(ids, int32([1] * m), 1, tiles)
    hidden, rows = compute(shape, w, plan, z, (first, second), wide)
    check_hidden(shape, w, ids, z, hidden)
    check_rows(shape, w, ids, hidden, rows)


DEEP = Experts(width=32, live=32, latent=704, experts=4, k=2)
HALF = Experts(width=256, live=192, latent=64, experts=4, k=2)
THREE = Experts(width=128, live=96, latent=160, experts=16, k=3)
DIRECT = {
    "loop, then half a tile": Tile(rows=32, columns=128, warps=2, stages=3, slices=1),
    "loop of fewer in flight than stages": Tile(rows=32, columns=128, warps=2, stages=4, slices=1),
    "loop that ends inside a slice": Tile(rows=32, columns=256, warps=4, stages=2, slices=2),
    "two tiles per slice, two groups": Tile(rows=64, columns=512, warps=4, stages=2, slices=2),
    "no loop": Tile(rows=16, columns=256, warps=1, stages=3, slices=1),
}


@pytest.mark.parametrize("tile", DIRECT.values(), ids=DIRECT)
@pytest.mark.parametrize("shape", [DEEP, HALF], ids=str)
def test_direct_products_are_right_for_every_way_to_cut_the_columns(
    shape: Experts, tile: Tile
) -> None:
    w, z = random_experts(shape, seed=7), normal(6, 2, shape.latent)
    ids, plan_tiles = routing("random", 2, shape, seed=6), planned_tiles(2, shape.live)
    plan = decode_plan(ids, int32([1, 1]), 1, plan_tiles)
    hidden, rows = compute(shape, w, plan, z, (tile, tile))
    check_hidden(shape, w, ids, z, hidden)
    check_rows(shape, w, ids, hidden, rows)


COPIED = ONE_WAVE.gate_up[0]
assert COPIED.copied_registers
BY_PAIR = [
    pytest.param(tiles.most_rows, *tile_pair, id=f"{tiles.most_rows}-{tiles.most_columns}-{index}")
    for tiles in TABLE
    if tiles.by_pair
    for index, tile_pair in enumerate(pairs_of(tiles))
]
BY_PAIR_LOOPS = [
    (1, DIRECT["loop, then half a tile"], Tile(16, columns=128, warps=2, stages=2, slices=1)),
    (
        2,
        DIRECT["loop that ends inside a slice"],
        Tile(32, columns=256, warps=4, stages=3, slices=1),
    ),
]


def check_by_pair(
    shape: Experts,
    tiles: tuple[Tile, Tile],
    lengths: list[int],
    *,
    wide: bool = False,
    kind: str = "random",
) -> None:
    m, w = len(lengths), random_experts(shape, seed=8)
    z, ids = normal(7, m, shape.latent), routing(kind, m, shape, seed=9)
    share = torch.rand(m, shape.k, device=DEVICE)
    alive, plan = int32(lengths), ExpertPlan.by_pair(ids, PAIR_TOKENS)
    hidden, partial = poisoned(m * shape.k, shape.width), poisoned(m, shape.latent)
    live, settings = shape.live, {"beta": 4.0, "linear_beta": 25.0}

    def kernels() -> None:
        gate_up(z, w, plan, hidden, tiles[0], live=live, wide=wide, **settings)
        down_sum(share, hidden, w, ids, alive, partial, tiles[1], live=live, wide=wide)

    launch(kernels, [hidden, partial])
    check_hidden(shape, w, ids, z, hidden)
    exact, bound = weighted_rows(share, *down_rows(shape, w, ids, hidden))
    padding = (alive == 0)[:, None]
    right, within = exact.masked_fill(padding, 0), bound.masked_fill(padding, 0)
    assert bool(((partial.double() - right).abs() <= within).all())


@pytest.mark.parametrize("lengths", [[5], [0], [5, 3], [0, 3], [5, 0]], ids=str)
@pytest.mark.parametrize("shape", [*SHAPES, DEEP, HALF, THREE], ids=str)
def test_few_rows_are_two_launches_and_zero_for_padding(shape: Experts, lengths: list[int]) -> None:
    tiles = tiles_for(len(lengths), shape.live)
    if not tiles.by_pair:  # wide experts have a plan at two rows; by pair is right all the same
        tiles = tiles_for(1, shape.live)
    check_by_pair(shape, (tiles.gate_up[0], tiles.down[0]), lengths)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_share_experts_are_computed_pair_by_pair(kind: str) -> None:
    tiles = tiles_for(2, HALF.live)
    assert tiles.by_pair
    check_by_pair(HALF, (tiles.gate_up[0], tiles.down[0]), [1, 1], kind=kind)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("rows", "first", "second"), [*BY_PAIR, *BY_PAIR_LOOPS])
def test_every_candidate_by_pair_computes_the_same_function(
    rows: int, first: Tile, second: Tile, wide: bool
) -> None:
    check_by_pair(SHAPES[1] if ON_GPU else HALF, (first, second), [1] * rows, wide=wide)


@pytest.mark.skipif(not ON_GPU, reason="the interpreter has no asynchronous copies")
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("latent", [512, 1536, 3584])
def test_copied_operands_are_right_for_every_number_of_iterations(
    latent: int, rows: int, wide: bool
) -> None:
    shape = Experts(width=64, live=32, latent=latent, experts=16, k=4)
    check_by_pair(shape, (COPIED, ONE_WAVE.down[0]), [1] * rows, wide=wide)


def test_operands_are_copied_only_where_the_buffer_has_their_layout() -> None:
    bytes_of_a_column = COPIED.rows / 2 + COPIED.rows / 32 + 2
    assert COPIED_DEPTH * bytes_of_a_column <= COPIED_BYTES.value
    assert isinstance(COPIED_BYTES, tl.constexpr)  # or a cached kernel keeps another size
    assert all(can_copy(16, depth, 512, 4) for depth in (512, 1536, 3584))
    assert not any(can_copy(16, depth, 512, 4) for depth in (64, 160, 3600, 4096))
    assert not any(can_copy(*other) for other in ((32, 512, 512, 4), (16, 1024, 1024, 8)))


def test_few_rows_are_planned_by_pair_only_where_that_reads_little_twice() -> None:
    assert all(tiles.most_rows <= 2 for tiles in TABLE if tiles.by_pair)
    assert all(tiles_for(1, columns).by_pair for columns in (32, 192, 384))
    assert [tiles_for(2, columns).by_pair for columns in (32, 192, 384)] == [True, True, False]


def test_products_by_pair_refuse_what_only_other_plans_have() -> None:
    shape, tiles = MINI, tiles_for(1, MINI.live)
    w, ids = random_experts(shape, seed=8), routing("random", 1, shape, seed=9)
    plan = ExpertPlan.by_pair(ids, tiles.tokens)
    z, hidden = normal(7, 1, shape.latent), poisoned(shape.k, shape.width)
    staged, settings = Tile(rows=16, columns=256, warps=1, stages=4), {"live": shape.live}
    with pytest.raises(ValueError, match="slices"):
        gate_up(z, w, plan, hidden, staged, beta=4.0, linear_beta=25.0, wide=False, **settings)
    with pytest.raises(ValueError, match="by pair"):
        down(hidden, w, plan, hidden, staged, wide=False, **settings)


@pytest.mark.skipif(not ON_GPU, reason="nothing runs side by side in the interpreter")
@pytest.mark.parametrize("rows", [1, 2])
def test_launches_that_overlap_leave_what_launches_in_turn_leave(rows: int) -> None:
    """64 chains in one graph, the same buffers for all, as layers after one another."""
    shape, tiles = SHAPES[1], tiles_for(rows, SHAPES[1].live)
    assert tiles.by_pair
    w, z = random_experts(shape, seed=2), normal(3, 64 * rows, shape.latent)
    ids = routing("random", 64 * rows, shape, seed=4)
    share, lengths = torch.rand(64 * rows, shape.k, device=DEVICE), int32([1] * rows)
    hidden, partial = poisoned(rows * shape.k, shape.width), poisoned(64 * rows, shape.latent)
    live, settings = shape.live, {"beta": 4.0, "linear_beta": 25.0}

    def chain(step: int, after: Callable[[], None] = lambda: None) -> None:
        own = slice(step * rows, (step + 1) * rows)
        first, second = tiles.gate_up[0], tiles.down[0]
        plan = ExpertPlan.by_pair(ids[own], tiles.tokens)
        gate_up(z[own], w, plan, hidden, first, live=live, wide=False, **settings)
        after()
        own_share, own_partial = share[own], partial[own]
        down_sum(
            own_share, hidden, w, ids[own], lengths, own_partial, second, live=live, wide=False
        )
        after()

    for step in range(64):
        chain(step, after=torch.cuda.synchronize)
    right = partial.clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for step in range(64):
            chain(step)
    for _ in range(100):
        hidden.fill_(POISONS[0])
        partial.fill_(POISONS[0])
        graph.replay()
        assert torch.equal(partial, right)


ALL_TILES = sorted(
    {tile for tiles in TABLE for tile in (*tiles.gate_up, *tiles.down) if not tiles.by_pair}
    | {tile for tiles in TABLE for tile in tiles.gate_up}
    | {*DIRECT.values()},
    key=str,
)


@pytest.mark.parametrize("depth", [32, 64, 96, 192, 384, 3584])
@pytest.mark.parametrize("tile", ALL_TILES, ids=str)
def test_every_slice_of_an_iteration_has_the_columns_of_an_operand(tile: Tile, depth: int) -> None:
    columns = tile.columns_for(depth)
    assert tile.columns % columns == 0
    assert columns >= LEAST_COLUMNS * max(tile.slices, 1)
    assert tile.rows // tile.groups >= 16
    assert tile.groups * max(tile.slices, 1) in (1, tile.warps)


def test_tiles_of_a_sum_by_pair_hold_an_operand_of_each_expert() -> None:
    tiles = [tile for tiles in TABLE if tiles.by_pair for tile in tiles.down]
    assert tiles
    assert all(tile.slices == 1 and tile.rows >= 16 for tile in tiles)


COLUMNS = [  # tile columns, slices, depth, columns of an iteration
    (256, 0, 192, 256),
    (256, 1, 192, 128),
    (256, 1, 384, 128),
    (256, 1, 3584, 256),
    (256, 2, 384, 256),
    (1024, 8, 3584, 1024),
]


@pytest.mark.parametrize(("columns", "slices", "depth", "right"), COLUMNS)
def test_an_iteration_is_as_wide_as_computes_least(
    columns: int, slices: int, depth: int, right: int
) -> None:
    assert Tile(64, columns, 8, 2, slices).columns_for(depth) == right


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_padding_rows_reach_no_expert_and_their_sum_is_zero(
    weights: dict[Experts, ExpertWeights], shape: Experts
) -> None:
    w, q, lengths = weights[shape], 2, int32([7, 0, 2])
    z = normal(1, 6, shape.latent)
    z[2:4] = torch.nan
    ids, tiles = routing("equal", 6, shape, seed=1), tiles_for(6, shape.live)
    plan = decode_plan(ids, lengths, q, tiles)
    hidden, rows = compute(shape, w, plan, z, (tiles.gate_up[0], tiles.down[0]))
    live = torch.tensor([0, 1, 4, 5], device=DEVICE)
    padding = slice(2 * shape.k, 4 * shape.k)
    for untouched in (hidden[padding], rows[padding]):
        assert bool((untouched.isnan() | (untouched == POISONS[1])).all())
    pairs = (live[:, None] * shape.k + torch.arange(shape.k, device=DEVICE)).flatten()
    check_hidden(shape, w, ids[live], z[live], hidden[pairs])
    check_rows(shape, w, ids[live], hidden[pairs], rows[pairs])
    weight = torch.rand(6, shape.k, device=DEVICE)
    rows[padding] = torch.nan
    partial = poisoned(6, shape.latent)
    launch(lambda: weighted_sum(weight, rows, lengths, q, partial), [partial])
    assert bool((partial[2:4] == 0).all())
    kept = rows.view(6, shape.k, -1)[live].flatten(0, 1)
    exact, bound = weighted_rows(weight[live], kept)
    assert bool(((partial[live].double() - exact).abs() <= bound).all())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_prefill_of_many_rows_shares_blocks(
    weights: dict[Experts, ExpertWeights], shape: Experts
) -> None:
    m = 300 if ON_GPU else 70
    w, z, ids = weights[shape], normal(2, m, shape.latent), routing("random", m, shape, seed=2)
    tiles = tiles_for(m, shape.live)
    plan = plan_sorted(ids, shape.experts, tiles.tokens)
    hidden, rows = compute(shape, w, plan, z, (tiles.gate_up[0], tiles.down[0]))
    check_hidden(shape, w, ids, z, hidden)
    check_rows(shape, w, ids, hidden, rows)


SCALES = [(0, 2.0**10), (1, 2.0**10), (127, 1.0), (128, 1.0), (129, 1.0), (253, 2.0**-20)]


@pytest.mark.parametrize(("byte", "size"), [*SCALES, (254, 2.0**-20)])
def test_every_scale_byte_is_exact(byte: int, size: float) -> None:
    shape, tiles = MINI, tiles_for(3, MINI.live)
    w = random_experts(shape, seed=byte)
    # Codes up to 1.5: with byte 254 a weight of 2^128 is beyond BF16, as in `decode_mxfp4`.
    w.w2_packed.bitwise_and_(0xBB)
    w.w2_scale.fill_(byte)
    ids = routing("random", 3, shape, seed=byte)
    plan = decode_plan(ids, int32([1, 1, 1]), 1, tiles)
    hidden, rows = normal(byte, 6, shape.width, scale=size), poisoned(6, shape.latent)
    wide = has_wide_scales(w.w2_scale)
    assert wide == (byte > 128)

    def kernels() -> None:
        down(hidden, w, plan, rows, tiles.down[0], live=shape.live, wide=wide)

    launch(kernels, [rows])
    assert bool((rows != 0).any())
    check_rows(shape, w, ids, hidden, rows)


def test_a_nan_scale_spoils_its_own_row_only() -> None:
    shape, tiles = MINI, tiles_for(3, MINI.live)
    w = random_experts(shape, seed=3)
    w.w2_scale[:, 5] = 255
    ids = routing("equal", 3, shape, seed=3)
    plan = decode_plan(ids, int32([1, 1, 1]), 1, tiles)
    hidden, rows = normal(3, 6, shape.width), poisoned(6, shape.latent)
    assert has_wide_scales(w.w2_scale)

    def kernels() -> None:
        down(hidden, w, plan, rows, tiles.down[0], live=shape.live, wide=True)

    launch(kernels, [rows])
    assert bool(rows[:, 5].isnan().all())
    kept = [column for column in range(shape.latent) if column != 5]
    exact, bound = down_rows(shape, w, ids, hidden)
    assert bool(((rows.double() - exact).abs() <= bound)[:, kept].all())


def blocks_of(plan: ExpertPlan) -> list[tuple[int, list[int]]]:
    assert plan.counts is not None
    assert plan.members is not None
    numbers = zip(plan.experts.tolist(), plan.counts.tolist(), plan.members.tolist(), strict=True)
    return [(expert, members[:count]) for expert, count, members in numbers if count]


@pytest.mark.parametrize("tokens", [1, 4, 8])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("q", [1, 3])
def test_a_plan_puts_every_live_pair_into_one_block(q: int, kind: str, tokens: int) -> None:
    requests, dead = 7, 2
    lengths = [5] * requests
    lengths[dead] = 0
    ids = routing(kind, requests * q, ODD, seed=q)
    plan = ExpertPlan.empty(ids.numel(), tokens, DEVICE)
    device_lengths = int32(lengths)
    launch(lambda: plan_pairs(ids, device_lengths, q, plan), [])
    blocks, flat = blocks_of(plan), ids.flatten().tolist()
    pairs = [pair for _, members in blocks for pair in members]
    alive = [p for p in range(len(flat)) if p // (q * ODD.k) != dead]
    assert sorted(pairs) == alive
    assert all(flat[pair] == expert for expert, members in blocks for pair in members)
    load = {expert: sum(flat[p] == expert for p in alive) for expert in set(flat)}
    count = {expert: sum(e == expert for e, _ in blocks) for expert in set(flat)}
    assert count == {expert: -(-n // tokens) for expert, n in load.items()}


@pytest.mark.parametrize("tokens", [16, 64])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [1, 5, 100])
def test_a_sorted_plan_puts_every_pair_into_one_block(m: int, kind: str, tokens: int) -> None:
    ids = routing(kind, m, ODD, seed=m)
    blocks, flat = blocks_of(plan_sorted(ids, ODD.experts, tokens)), ids.flatten().tolist()
    assert sorted(pair for _, members in blocks for pair in members) == list(range(len(flat)))
    assert all(flat[pair] == expert for expert, members in blocks for pair in members)
    assert len(blocks) == sum(-(-flat.count(expert) // tokens) for expert in set(flat))
