# SPDX-License-Identifier: Apache-2.0
"""Variant tables: what is read, what is refused, and where another variant takes over."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.errors import InputError
from fasttrack.manifest.variants import MAX_BYTES, load_variant_table, switch_points


def row(name: str, low: int, high: int, **changes: Any) -> dict[str, Any]:
    return {"id": name, "kernel": "k", "arch": "sm_90a", "tp": 8, "rows": [low, high]} | changes


def table(*rows: dict[str, Any]) -> str:
    return json.dumps({"variants": rows})


def test_parameters_of_a_kernel_are_kept_and_say_nothing() -> None:
    loaded = load_variant_table(table(row("a", 1, 2, warps=4, stages=[1, 2])), "t.json")
    assert loaded.variants[0].rows == (1, 2)
    assert (loaded.variants[0].model_extra or {}) == {"warps": 4, "stages": [1, 2]}


def test_switch_points_are_where_another_variant_of_the_series_takes_over() -> None:
    rows = [row("b", 3, 8), row("a", 1, 2), row("c", 17, 64), row("x", 5, 64, kernel="other")]
    assert switch_points(load_variant_table(table(*rows), "t.json")) == (3, 17)


@given(st.sets(st.integers(2, 200), max_size=6), st.sampled_from([1, 4, 8]))
def test_switch_points_are_all_starts_but_the_first(points: set[int], tp: int) -> None:
    starts = [1, *sorted(points)]
    ends = [s - 1 for s in starts[1:]] + [300]
    rows = [
        row(f"v{i}", low, high, tp=tp)
        for i, (low, high) in enumerate(zip(starts, ends, strict=True))
    ]
    loaded = load_variant_table(table(*reversed(rows)), "t.json")
    assert switch_points(loaded) == tuple(sorted(points))


def test_neighbouring_and_unrelated_ranges_do_not_overlap() -> None:
    load_variant_table(table(row("a", 1, 2), row("b", 3, 3)), "t.json")
    load_variant_table(
        table(row("a", 1, 2), row("b", 1, 2, tp=16), row("c", 1, 2, arch="sm_103a")), "t"
    )


REFUSED = [
    ("ranges that share one row", table(row("a", 1, 3), row("b", 3, 4)), "overlaps"),
    ("a range inside another", table(row("a", 1, 9), row("b", 2, 3)), "overlaps"),
    ("a reversed range", table(row("a", 3, 2)), "start is not above"),
    ("ids that repeat", table(row("a", 1, 2), row("a", 3, 4)), "'a' again"),
    ("the reserved id", table(row("all", 1, 2)), "another id"),
    ("no rows", table(row("a", 0, 2)), "rows"),
    ("a number as text", table(row("a", 1, 2, tp="8")), "tp"),
    ("an empty table", table(), "variants"),
    ("an unknown key beside the list", '{"variants": [], "extra": 1}', "extra"),
    ("a missing key", json.dumps({"variants": [{"id": "a"}]}), "kernel"),
    ("a repeated key", '{"variants": [], "variants": []}', "repeated key"),
    ("another shape", "[1, 2]", "top"),
    ("text that is not JSON", '{"variants": [}', "t.json:1:15"),
    ("a number that is not finite", '{"variants": NaN}', "non-finite"),
    ("a nest of a hundred thousand lists", "[" * 100_000, "JSON object"),
    ("bytes that are not text", b"\xff\xfe\x00", "JSON object"),
    ("more than a mebibyte", " " * (MAX_BYTES + 1), "at most"),
]


@pytest.mark.parametrize(("why", "text", "said"), REFUSED, ids=[r[0] for r in REFUSED])
def test_a_table_is_refused_for(why: str, text: str | bytes, said: str) -> None:
    with pytest.raises(InputError) as caught:
        load_variant_table(text, "t.json")
    assert said in str(caught.value), why
