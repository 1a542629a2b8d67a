# SPDX-License-Identifier: Apache-2.0
"""Assertions that look at less of a result: the cases of `narrower.yaml`, and the order of cuts."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.testmodel.cuts import LOOSE_FIRST, lost
from fasttrack.testmodel.drawn import UNBOUNDED, size_of
from fasttrack.testmodel.values import Opaque

from .changed import taken

CASES = yaml.safe_load(
    (Path(__file__).parent.parent / "cases" / "narrower.yaml").read_text(encoding="utf-8")
)
TEST = "tests/test_more.py"
_HEAD = (
    "import json\nimport pathlib\n\nimport numpy\nimport torch\n\nfrom host.fast import kernels\n"
    "from reference import oracle\nfrom vectors import cosine\n\n\ndef test_one():\n"
    "    values = [1.0, 2.0]\n    got, want = kernels.step(values), oracle.step(values)\n"
)
_CUTS = st.frozensets(st.sampled_from(sorted({c for order in LOOSE_FIRST.values() for c in order})))


def _test(body: str) -> str:
    return _HEAD + "".join(f"    {line}".rstrip() + "\n" for line in body.splitlines())


@pytest.mark.parametrize("name", CASES)
def test_an_assertion_that_says_less_is_told_and_its_like_is_not(name: str) -> None:
    case: dict[str, Any] = CASES[name]
    found = taken({TEST: _test(case["was"])}, {TEST: _test(case["is"])})
    assert sorted(found) == sorted(case["takes"])


@given(_CUTS, _CUTS, st.sampled_from([(), ("at most",), ("at least",), ("at most", "at least")]))
def test_what_was_cut_off_before_is_never_lost_anew(
    old: frozenset[str], new: frozenset[str], bounds: tuple[str, ...]
) -> None:
    assert not lost(old, old, bounds)
    assert not lost(old, old & new, bounds) or bounds
    assert not lost(old, new, bounds) & old


@given(_CUTS, _CUTS, st.sampled_from(["at most", "at least"]))
def test_of_two_reductions_under_a_bound_one_is_looser_at_most(
    old: frozenset[str], new: frozenset[str], bound: str
) -> None:
    assert not (lost(old, new, (bound,)) and lost(new, old, (bound,)))


@given(st.integers(-9, 9), st.integers(0, 20))
def test_the_values_of_a_strategy_are_counted_where_they_are_few(low: int, more: int) -> None:
    assert size_of(Opaque(f"hypothesis.strategies.integers({low}, {low + more})")) == more + 1
    named = f"st.integers(max_value={low + more}, min_value={low})"
    assert size_of(Opaque(named)) == more + 1
    assert size_of(Opaque(f"strategies.just({low})")) == 1
    assert size_of(Opaque(f"strategies.sampled_from([{low}]#{more + 1})")) == more + 1
    assert size_of(Opaque(f"strategies.floats({low}, {low})")) == 1
    assert size_of(Opaque(f"strategies.floats({low}, {low + more + 1})")) == UNBOUNDED
