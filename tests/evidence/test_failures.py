# SPDX-License-Identifier: Apache-2.0
"""Contradictions are told from failures, and neither ever shows anything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.evidence.failures import contradictions, failure_of, one_sided, said_no, unsure
from fasttrack.evidence.faults import Fault
from fasttrack.evidence.predicates.common import Gate
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


@given(statement=statements(), undeclared=st.sampled_from([(), ("engine/table.json",)]))
def test_a_failure_is_one_whatever_the_run_read_besides(
    statement: Statement, undeclared: tuple[str, ...]
) -> None:
    inputs = statement.predicate.inputs.model_copy(update={"undeclared": undeclared})
    read = Statement(
        statement.predicate_type, statement.predicate.model_copy(update={"inputs": inputs})
    )
    assert said_no(read) == said_no(statement)
    assert said_no(read) or failure_of(statement) not in {Fault.FAILED, Fault.ADMITTED}
    assert not said_no(read) or failure_of(read) is not None


@pytest.mark.parametrize("kind", [Kind.KERNEL_TEST, Kind.REFUSAL])
def test_a_failed_test_counts_beside_whatever_else_is_wrong(kind: Kind) -> None:
    results = good(kind).predicate.results  # type: ignore[union-attr]
    odd = {"results": results.model_copy(update={"failed": ("t",), "skipped": ("u",)})}
    if kind is Kind.KERNEL_TEST:
        gate = Gate(name="masks", passed=True, controls=1, killed=2)
        odd |= {"gates": (gate,)}
        assert failure_of(good(kind, odd)) is Fault.CONTRADICTION
    assert said_no(good(kind, odd))


def test_a_gate_that_did_not_pass_counts_beside_skipped_tests() -> None:
    results = good(Kind.KERNEL_TEST).predicate.results  # type: ignore[union-attr]
    skipped = {"results": results.model_copy(update={"skipped": ("u",)})}
    assert not said_no(good(Kind.KERNEL_TEST, skipped))
    gate = Gate(name="masks", passed=False, controls=1, killed=1)
    assert said_no(good(Kind.KERNEL_TEST, {**skipped, "gates": (gate,)}))


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
