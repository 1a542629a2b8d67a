# SPDX-License-Identifier: Apache-2.0
"""Witness points against requirements that are found by listing every step and every point."""

import json
from collections.abc import Iterator, Mapping
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasttrack.errors import FactUnavailable
from fasttrack.manifest.axes import NARROWABLE
from fasttrack.manifest.cells import Cell
from fasttrack.manifest.cost import MAX_CELLS
from fasttrack.manifest.model import Manifest, Region, Unit
from fasttrack.manifest.points import (
    TooManyPoints,
    cost_by_axis,
    counts_by_region,
    witness_points,
)
from fasttrack.manifest.region import Point
from fasttrack.manifest.variants import VariantTable, load_variant_table
from fasttrack.manifest.words import Dtype, GraphMode, Ranks, UnitAxis
from fasttrack.vocabulary import Kind

from .builders import VOCABULARY, Gpu, admits, manifest, region, regions, unit, valid

VARIANTS = [
    ("small", 8, (1, 2)),
    ("middle", 8, (3, 16)),
    ("large", 8, (17, 40)),
    ("t16", 16, (1, 64)),
]
TABLE = load_variant_table(
    json.dumps(
        {
            "variants": [
                {"id": f"{name}-{arch}", "kernel": "k", "arch": arch, "tp": tp, "rows": rows}
                for arch in ("sm_90a", "sm_103a", "sm_100a")
                for name, tp, rows in VARIANTS
            ]
        }
    ),
    "variants.json",
)
TABLES: Mapping[str, VariantTable] = {str(valid().units[0].variants): TABLE}
ALL_AXES = [axis.value for axis in UnitAxis]


def cells_of(m: Manifest, kind: Kind) -> tuple[Cell, ...]:
    return witness_points(m, kind, VOCABULARY, TABLES)


def listed_steps(r: Region) -> list[tuple[int, int, int]]:
    """(rows, draft, requests) of every admissible step, by listing them."""
    return [
        (n * (1 + d), d, n)
        for d in r.draft_tokens
        for n in range(r.requests.min, r.requests.max + 1)
        if n * (1 + d) <= r.rows_max
    ]


def required_steps(r: Region, switch_points: tuple[int, ...]) -> set[tuple[int, int, int]]:
    """Smallest, largest, both sides of switch points at the outer drafts; each draft once."""
    steps = listed_steps(r)
    required = set()
    for draft in (min(r.draft_tokens), max(r.draft_tokens)):
        own = sorted(s for s in steps if s[1] == draft)
        required |= {own[0], own[-1]}
        for point in switch_points:
            required |= {
                s for s in own if s[0] < point and not any(s[0] < o[0] < point for o in own)
            }
            required |= {
                s for s in own if s[0] >= point and not any(point <= o[0] < s[0] for o in own)
            }
    inner = set(r.draft_tokens) - {s[1] for s in required}
    return required | {min(s for s in steps if s[1] == draft) for draft in inner}


def step_of(c: Cell) -> tuple[int, int, int]:
    rows, draft, requests = (c.values[a] for a in ("rows", "draft_tokens", "requests"))
    assert isinstance(rows, int)
    assert isinstance(draft, int)
    assert isinstance(requests, int)
    return rows, draft, requests


def axis_values(r: Region, axis: str) -> set[str | int]:
    if axis in type(r.dtypes).model_fields:
        return set(getattr(r.dtypes, axis))
    if axis == "context":
        return {1, r.context_max}
    if axis == "ranks":
        return {r.ranks}
    return set(getattr(r, {"graph_mode": "graph_modes"}.get(axis, axis)))


units = st.builds(
    lambda axes, points: unit(*axes, switch_points=points if "rows" in axes else ()),
    st.lists(st.sampled_from(ALL_AXES), min_size=1, unique=True),
    st.lists(st.integers(2, 14), max_size=3, unique=True),
)


@given(regions(), units)
@settings(max_examples=60, deadline=None)
def test_kernel_tests_visit_exactly_the_required_steps_per_hardware_and_parallelism(
    r: Region, u: Unit
) -> None:
    cells = cells_of(manifest(r, units=(u,)), Kind.KERNEL_TEST)
    if {"rows", "requests"}.isdisjoint(u.axes):
        assert all("rows" not in c.values and "requests" not in c.values for c in cells)
        return
    required = required_steps(r, u.switch_points)
    crossed = r.tensor_parallel if "tensor_parallel" in u.axes else (None,)
    seen = {(c.values["hardware"], c.values.get("tensor_parallel"), step_of(c)) for c in cells}
    assert seen == set(product(r.hardware, crossed, required))


@given(regions(), units)
@settings(max_examples=60, deadline=None)
def test_kernel_tests_hold_every_value_and_every_pair_of_the_other_axes(r: Region, u: Unit) -> None:
    cells = cells_of(manifest(r, units=(u,)), Kind.KERNEL_TEST)
    with_steps = not {"rows", "requests"}.isdisjoint(u.axes)
    paired = [a for a in u.axes if a not in {"rows", "requests"}]
    if with_steps:
        assert {c.values["draft_tokens"] for c in cells} == set(r.draft_tokens)
        paired = [a for a in paired if a != "draft_tokens"]
    for axis in ["hardware", *paired]:
        assert {c.values[axis] for c in cells} == axis_values(r, axis)
    for one, two in combinations(["hardware", *paired], 2):
        seen = {(c.values[one], c.values[two]) for c in cells}
        assert seen == set(product(axis_values(r, one), axis_values(r, two)))


@given(regions(), units)
@settings(max_examples=40, deadline=None)
def test_kernel_test_keys_hold_the_unit_the_hardware_and_its_axes_alone(r: Region, u: Unit) -> None:
    step = {"requests", "draft_tokens", "rows"}
    names = {"unit", "hardware", *u.axes}
    names |= step if not {"rows", "requests"}.isdisjoint(u.axes) else set()
    for c in cells_of(manifest(r, units=(u,)), Kind.KERNEL_TEST):
        assert json.loads(c.key) == dict(c.values)
        assert set(c.values) == names


BESIDE: Mapping[str, list[str]] = {
    "hardware": sorted(VOCABULARY),
    "ranks": list(Ranks),
    "weights": list(Dtype),
    "activations": list(Dtype),
    "kv_cache": list(Dtype),
    "conv_state": list(Dtype),
    "recurrent_state": list(Dtype),
    "graph_mode": list(GraphMode),
}
POWERS = [1 << n for n in range(14)]


def values_past(r: Region, axis: str) -> set[str | int]:
    """Vocabulary values outside of a set that are next to a value of it, by looking at each."""
    inside = axis_values(r, axis)
    if axis in BESIDE:
        words = BESIDE[axis]
        near = {
            words[i + d]
            for i, w in enumerate(words)
            if w in inside
            for d in (-1, 1)
            if 0 <= i + d < len(words)
        }
        return set(near) - inside
    numbers = [v for v in inside if isinstance(v, int)]
    if axis == "draft_tokens":
        return {n + d for n in numbers for d in (-1, 1) if n + d >= 0} - inside
    below = {max((p for p in POWERS if p < n), default=n) for n in numbers}
    above = {min(p for p in POWERS if p > n) for n in numbers}
    return (below | above) - inside


def listed_layers(r: Region) -> Iterator[tuple[str, set[Point]]]:
    """Bound and every point past it (the first layer), by listing the region's points."""
    axes = (*BESIDE, "tensor_parallel", "decode_context_parallel")
    free = {a: sorted(axis_values(r, a), key=str) for a in axes}
    contexts = list(range(1, r.context_max + 1))
    steps = [(n, d) for _, d, n in listed_steps(r)]

    def points(
        names: Mapping[str, list[str | int]], pairs: list[tuple[int, int]], spans: list[int]
    ) -> set[Point]:
        return {
            Point(requests=n, draft_tokens=d, context=c, **dict(zip(names, chosen, strict=True)))  # type: ignore[arg-type]
            for chosen in product(*names.values())
            for n, d in pairs
            for c in spans
        }

    for axis in axes:
        for value in values_past(r, axis):
            yield axis, points(free | {axis: [value]}, steps, contexts)
    requests = range(r.requests.min, r.requests.max + 1)
    for draft in values_past(r, "draft_tokens"):
        yield "draft_tokens", points(free, [(n, int(draft)) for n in requests], contexts)
    if r.requests.min > 1:
        fewer = r.requests.min - 1
        pairs = [(fewer, d) for d in r.draft_tokens if fewer * (1 + d) <= r.rows_max]
        yield "requests.min", points(free, pairs, contexts)
    more = r.requests.max + 1
    yield "requests.max", points(free, [(more, d) for d in r.draft_tokens], contexts)
    for draft in r.draft_tokens:
        over = [n for n in requests if n * (1 + draft) > r.rows_max]
        if over:
            yield "rows_max", points(free, [(over[0], draft)], contexts)
    yield "context_max", points(free, steps, [r.context_max + 1])


@given(regions(), st.lists(regions(), max_size=2))
@settings(max_examples=12, deadline=None)
def test_refusals_are_one_point_of_each_layer_that_no_other_region_admits(
    r: Region, others: list[Region]
) -> None:
    m = manifest(r, *others)
    cells = [c for c in cells_of(m, Kind.REFUSAL) if c.region == m.scope[0].id]
    left = []
    for bound, layer in listed_layers(r):
        free = {p for p in layer if not any(admits(o, p) for o in m.scope[1:])}
        if free:
            left.append((bound, free))
    assert len(cells) == len(left)
    for c in cells:
        keys = [
            json.dumps(
                {"region": c.region, "bound": b} | p.values(), sort_keys=True, separators=(",", ":")
            )
            for b, free in left
            for p in free
        ]
        assert keys.count(c.key) == 1


def test_a_bound_that_another_region_takes_over_is_not_refused() -> None:
    low, high = region(requests=(1, 4)), region(requests=(5, 8), rows_max=8)
    bounds = [(c.region, c.values["bound"]) for c in cells_of(manifest(low, high), Kind.REFUSAL)]
    assert ("r0", "requests.max") not in bounds
    assert ("r1", "requests.min") not in bounds
    assert ("r1", "requests.max") in bounds
    alone = [c.values["bound"] for c in cells_of(manifest(low), Kind.REFUSAL)]
    assert "requests.max" in alone


def test_a_bound_that_another_region_takes_over_in_part_is_refused_in_the_rest() -> None:
    both = region(requests=(1, 4), kv_cache=["bf16", "fp8_e4m3"])
    high = region(requests=(5, 8), rows_max=8, kv_cache=["bf16"])
    [cell] = [
        c
        for c in cells_of(manifest(both, high), Kind.REFUSAL)
        if (c.region, c.values["bound"]) == ("r0", "requests.max")
    ]
    assert cell.values["kv_cache"] == "fp8_e4m3"
    assert cell.values["requests"] == 5


@given(regions())
@settings(max_examples=40, deadline=None)
def test_model_evals_hold_all_pairs_with_the_outer_drafts(r: Region) -> None:
    cells = cells_of(manifest(r), Kind.MODEL_EVAL)
    axes = ["hardware", "tensor_parallel", "decode_context_parallel", "kv_cache", "activations"]
    want = {axis: axis_values(r, axis) for axis in axes}
    want["draft_tokens"] = {min(r.draft_tokens), max(r.draft_tokens)}
    for one, two in combinations(want, 2):
        seen = {(c.values[one], c.values[two]) for c in cells}
        assert seen == set(product(want[one], want[two]))
    assert {c.values["ranks"] for c in cells} == {str(r.ranks)}


def test_stress_visits_a_step_of_every_variant_and_the_ends() -> None:
    m = manifest(region(tensor_parallel=[8], requests=(1, 24), draft_tokens=[0, 4], rows_max=40))
    mixer = [c for c in cells_of(m, Kind.STRESS) if c.values["unit"] == "mixer"]
    assert [(c.values["variant"], step_of(c)) for c in mixer] == [
        ("all", (1, 0, 1)),
        ("all", (40, 4, 8)),
        ("small-sm_90a", (1, 0, 1)),
        ("middle-sm_90a", (3, 0, 3)),
        ("large-sm_90a", (17, 0, 17)),
    ]
    assert {c.values["ranks"] for c in mixer} == {"real"}


def test_stress_leaves_out_variants_that_no_step_reaches() -> None:
    m = manifest(region(tensor_parallel=[8], requests=(1, 2), draft_tokens=[4], rows_max=16))
    variants = [
        c.values["variant"] for c in cells_of(m, Kind.STRESS) if c.values["unit"] == "mixer"
    ]
    assert variants == ["all", "all", "middle-sm_90a"]


def test_sync_audits_are_every_variant_also_of_architectures_without_a_region() -> None:
    cells = [c for c in cells_of(valid(), Kind.SYNC_AUDIT) if c.values["unit"] == "mixer"]
    assert {c.values["variant"] for c in cells} == {v.id for v in TABLE.variants}
    by_region = {c.values["arch"]: c.region for c in cells}
    assert by_region == {"sm_90a": "one-device", "sm_103a": "tp8", "sm_100a": ""}


def test_a_unit_with_kernels_and_no_table_is_audited_as_a_whole() -> None:
    m = manifest(units=(unit("rows", archs=("sm_90a",), variants=None),))
    [cell] = cells_of(m, Kind.SYNC_AUDIT)
    assert (cell.values["variant"], cell.values["arch"]) == ("all", "sm_90a")


def test_performance_is_one_cell_per_controlled_claim_without_its_ratio() -> None:
    [claim] = valid().claims
    better = claim.model_copy(update={"ratio": claim.ratio + 1})
    side = claim.baseline.model_copy(update={"hardware": "gb300"})
    apart = claim.model_copy(
        update={"id": "apart", "baseline": side, "uncontrolled": True, "reason": "published"}
    )
    [cell] = cells_of(manifest(claims=(claim, apart)), Kind.PERFORMANCE)
    assert [cell] == list(cells_of(manifest(claims=(better,)), Kind.PERFORMANCE))
    assert (cell.region, cell.values["unit"], cell.values["rows"]) == ("", "mixer", 1)


@pytest.mark.parametrize("kind", Kind)
def test_cells_do_not_depend_on_the_order_of_lists_or_on_the_run(kind: Kind) -> None:
    m = valid()
    turned = m.model_copy(
        update={
            "scope": tuple(
                r.model_copy(
                    update={
                        "tensor_parallel": r.tensor_parallel[::-1],
                        "draft_tokens": r.draft_tokens[::-1],
                        "graph_modes": r.graph_modes[::-1],
                        "dtypes": r.dtypes.model_copy(update={"kv_cache": r.dtypes.kv_cache[::-1]}),
                    }
                )
                for r in m.scope
            ),
            "units": tuple(u.model_copy(update={"axes": u.axes[::-1]}) for u in m.units),
        }
    )
    assert [c.key for c in cells_of(m, kind)] == [c.key for c in cells_of(turned, kind)]
    assert cells_of(m, kind) == cells_of(m, kind)
    assert len(set(cells_of(m, kind))) == len(cells_of(m, kind))


def test_counts_are_per_region() -> None:
    cells = cells_of(valid(), Kind.MODEL_EVAL)
    assert counts_by_region(cells) == {"tp8": 6, "one-device": 2}


def test_the_cost_of_an_axis_is_what_goes_when_it_has_one_value() -> None:
    r = region(
        tensor_parallel=[1, 2, 4, 8], requests=(1, 64), rows_max=64, kv_cache=["bf16", "fp32"]
    )
    m = manifest(r, units=(unit("rows", "tensor_parallel", "kv_cache", switch_points=[9]),))
    costs = cost_by_axis(m, "r", Kind.KERNEL_TEST, VOCABULARY, TABLES)
    # Four steps (1, 8, 9, 64) for each of four tensor parallelisms.
    assert len(cells_of(m, Kind.KERNEL_TEST)) == 16
    assert next(iter(costs.items())) == ("tensor_parallel", 12)
    assert set(costs) <= set(NARROWABLE)


def test_a_manifest_over_the_bound_is_refused_before_anything_is_listed() -> None:
    r = region(
        hardware=[f"gpu{i}" for i in range(64)],
        tensor_parallel=[1 << i for i in range(12)],
        requests=(1, 1 << 40),
        draft_tokens=list(range(64)),
        rows_max=1 << 40,
        context_max=1 << 40,
    )
    with pytest.raises(TooManyPoints, match="hardware") as caught:
        cells_of(manifest(r, units=(unit("rows", "tensor_parallel"),)), Kind.KERNEL_TEST)
    assert caught.value.estimate > MAX_CELLS
    assert caught.value.worst_axis == "hardware"


def test_huge_ranges_cost_no_more_than_small_ones() -> None:
    u = unit("rows", "context", switch_points=[1 << 19])
    huge = region(requests=(1, 1 << 40), rows_max=1 << 40, context_max=1 << 40)
    cells = cells_of(manifest(huge, units=(u,)), Kind.KERNEL_TEST)
    assert sorted(step_of(c)[0] for c in cells) == [1, (1 << 19) - 1, 1 << 19, 1 << 40]


def test_hardware_that_the_policy_does_not_know_is_could_not_tell() -> None:
    with pytest.raises(FactUnavailable, match="'unheard-of'"):
        cells_of(manifest(region(hardware=["unheard-of"])), Kind.STRESS)


def test_a_variant_table_that_is_not_there_is_could_not_tell() -> None:
    with pytest.raises(FactUnavailable, match="no variant table"):
        witness_points(valid(), Kind.SYNC_AUDIT, VOCABULARY, {})


def test_a_table_with_variants_for_many_gpus_does_not_count_them_for_each() -> None:
    gpus = [f"gpu{i}" for i in range(40)]
    rows = [
        {"id": f"v{n}-{i}", "kernel": "k", "arch": f"sm_{100 + i}", "tp": 8, "rows": [n, n]}
        for i in range(40)
        for n in range(1, 51)
    ]
    table = load_variant_table(json.dumps({"variants": rows}), "variants.json")
    vocabulary = {gpu: Gpu(f"sm_{100 + i}") for i, gpu in enumerate(gpus)}
    r = region(hardware=gpus, tensor_parallel=[8], requests=(1, 50), rows_max=50)
    m = manifest(r, units=valid().units[:1])
    cells = witness_points(m, Kind.STRESS, vocabulary, dict.fromkeys(TABLES, table))
    assert len(cells) == 40 * (2 + 50)


def test_of_two_steps_with_the_most_rows_stress_takes_the_one_with_the_shorter_draft() -> None:
    m = manifest(region(tensor_parallel=[1], requests=(1, 8), draft_tokens=[1, 0], rows_max=8))
    steps = {step_of(c) for c in cells_of(m, Kind.STRESS)}
    assert steps == {(1, 0, 1), (8, 0, 8)}
