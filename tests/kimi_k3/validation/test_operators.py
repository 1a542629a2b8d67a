# SPDX-License-Identifier: Apache-2.0
"""Answers agree with a second formulation; bounds are neither loose nor tight."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kimi_k3.reference.attn_res import finish_mix, summarize_blocks
from kimi_k3.validation.candidate import Candidate
from kimi_k3.validation.case import Case, Content
from kimi_k3.validation.controls.candidates import controls, honest_candidate
from kimi_k3.validation.draw import boundaries, some
from kimi_k3.validation.operators import OPERATORS

SEEDS = st.integers(0, 2**62)
HONEST = st.sampled_from(sorted(controls().honest))


@st.composite
def cases(draw: st.DrawFn, name: str | None = None) -> Case:
    candidate = honest_candidate(name or draw(HONEST))
    rows = draw(st.integers(*candidate.rows))
    scalars = {one.name: draw(st.integers(one.low, one.high)) for one in candidate.scalars}
    family = draw(st.sampled_from(OPERATORS[candidate.operator].schema.families))
    return Case(candidate, rows, scalars, family, draw(SEEDS))


@given(cases())
def test_the_stock_path_is_within_every_bound(case: Case) -> None:
    operator = OPERATORS[case.candidate.operator]
    content = operator.content(case)
    expected = operator.expected(case, content)
    for name, theirs in operator.stock(case, content).items():
        right = expected[name]
        off = (theirs.double() - right.value).abs()[right.written]
        assert bool((off <= right.bound[right.written].clamp(min=2.0**-126)).all()), name


@given(cases("mix"))
def test_the_mix_agrees_with_its_two_phase_form(case: Case) -> None:
    operator = OPERATORS["attn-res"]
    content = operator.content(case)
    rows, saved = case.rows, case.scalars["saved"]
    p = (content["prefix"][:rows].float() + content["delta"][:rows].float()).bfloat16().double()
    w, blocks = content["score"].double(), content["blocks"][:rows, :saved].double()
    summary = summarize_blocks(blocks, w, 1e-5)
    other = finish_mix(summary, p, w, content["norm"].double(), 1e-5)
    found = operator.expected(case, content)["out"].value[:rows]
    torch.testing.assert_close(found, other, rtol=1e-7, atol=1e-9)


@given(cases())
def test_content_follows_from_the_seed_and_changes_with_it(case: Case) -> None:
    operator = OPERATORS[case.candidate.operator]
    one, again = operator.content(case), operator.content(case)
    assert same(one, again)
    other = Case(case.candidate, case.rows, case.scalars, case.family, case.seed ^ 1)
    assert case.family == "zeros" or not same(one, operator.content(other))


def same(one: Content, other: Content) -> bool:
    return all(
        torch.equal(one[name].nan_to_num(nan=77.0), other[name].nan_to_num(nan=77.0))
        for name in one
    )


@given(cases())
def test_an_answer_is_owed_for_the_rows_of_the_call_alone(case: Case) -> None:
    operator = OPERATORS[case.candidate.operator]
    written = operator.expected(case, operator.content(case))["out"].written
    assert bool(written[: case.rows].all())
    assert not bool(written[case.rows :].any())


def off_by(case: Case, factor: float) -> bool:
    """Whether an answer that is off by a factor of BF16's unit is refused somewhere."""
    operator = OPERATORS[case.candidate.operator]
    right = operator.expected(case, operator.content(case))["out"]
    off = factor * 2.0**-8 * right.value.abs()[right.written]
    return bool((off > right.bound[right.written]).any())


@pytest.mark.parametrize("name", ["mix", "delta"])
def test_a_bound_refuses_two_roundings_of_ordinary_content(name: str) -> None:
    candidate = honest_candidate(name)
    for case in some(candidate, np.random.default_rng(3), 6, ["normal"]):
        assert off_by(case, 2.0)
        assert not off_by(case, 0.5)


@given(st.integers(0, 100), st.integers(0, 100))
def test_the_ends_of_a_range_come_first(low: int, more: int) -> None:
    found = boundaries(low, low + more)
    assert found[0] == low
    assert low + more in found[:2]
    assert all(low <= n <= low + more for n in found)
    assert len(set(found)) == len(found)


def test_all_families_and_both_ends_are_among_the_first_cases() -> None:
    candidate: Candidate = honest_candidate("mix")
    families = OPERATORS["attn-res"].schema.families
    first = some(candidate, np.random.default_rng(0), len(families))
    assert {case.family for case in first} == set(families)
    assert {1, 40} <= {case.rows for case in first}
    assert {1, 8} <= {case.scalars["saved"] for case in first}
