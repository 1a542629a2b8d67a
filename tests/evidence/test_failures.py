# SPDX-License-Identifier: Apache-2.0
"""Contradictions are told from failures, and neither ever shows anything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.evidence.failures import contradictions, failure_of, one_sided, unsure
from fasttrack.evidence.faults import Fault
from fasttrack.evidence.predicates.performance_v1 import PerformanceV1
from fasttrack.evidence.statement import Statement
from fasttrack.vocabulary import Kind
from tests.evidence.strategies import good, predicates, spread, statements


@given(statement=statements())
def test_a_statement_fails_in_one_way_or_shows_something(statement: Statement) -> None:
    found = failure_of(statement)
    odd = [*contradictions(statement.predicate)]
    assert (found is Fault.CONTRADICTION) == bool(odd)
    assert (found is None) == (not odd and not statement.problems())


@given(
    predicate=st.sampled_from([k for k in Kind if k is not Kind.PERFORMANCE]).flatmap(predicates)
)
def test_a_predicate_that_contradicts_itself_has_a_problem_too(predicate: object) -> None:
    if [*contradictions(predicate)]:  # type: ignore[arg-type]
        assert predicate.problems()  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", Kind)
def test_good_statements_fail_in_no_way(kind: Kind) -> None:
    assert failure_of(good(kind)) is None


def test_another_metric_than_the_cell_s_is_a_contradiction() -> None:
    told = good(Kind.PERFORMANCE, values={"metric": "decode_tokens_per_s", "unit": "kda"})
    assert failure_of(told) is Fault.CONTRADICTION


@pytest.mark.parametrize(
    ("ours", "baseline", "pairs", "sided"),
    [(10, 10, 10, False), (10, 10, 9, True), (10, 10, 11, True), (9, 10, 9, True)],
)
def test_both_sides_ran_as_often_as_there_are_pairs(
    ours: int, baseline: int, pairs: int, sided: bool
) -> None:
    sides = {
        name: spread(50.0).model_copy(update={"samples": samples})
        for name, samples in (("ours", ours), ("baseline", baseline))
    }
    predicate = good(Kind.PERFORMANCE, {**sides, "pairs": pairs}).predicate
    assert isinstance(predicate, PerformanceV1)
    assert bool(one_sided(predicate)) == sided


@pytest.mark.parametrize(("confidence", "enough"), [(0.949, False), (0.95, True), (0.99, True)])
def test_an_interval_is_sure_at_95_percent(confidence: float, enough: bool) -> None:
    predicate = good(Kind.MODEL_EVAL).predicate
    drop = predicate.drop.model_copy(update={"confidence": confidence})  # type: ignore[union-attr]
    assert (not unsure(predicate.model_copy(update={"drop": drop}))) == enough  # type: ignore[arg-type]
