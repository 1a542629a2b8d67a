# SPDX-License-Identifier: Apache-2.0
"""What kind of failure a statement tells of, and whether it contradicts itself.

A predicate's own `problems` say why it shows nothing. Some of them no honest tool can write: a
median outside its own percentiles, more negative controls caught than given. Those are told apart
here from tests that failed.
"""

from collections.abc import Iterator

from fasttrack.evidence.faults import Fault
from fasttrack.evidence.predicates import Predicate
from fasttrack.evidence.predicates.common import (
    Execution,
    Gate,
    Interval,
    Spread,
    TestResults,
)
from fasttrack.evidence.predicates.kernel_test_v1 import KernelTestV1
from fasttrack.evidence.predicates.model_eval_v1 import ModelEvalV1
from fasttrack.evidence.predicates.performance_v1 import PerformanceV1
from fasttrack.evidence.predicates.refusal_v1 import RefusalV1
from fasttrack.evidence.predicates.stress_v1 import StressV1
from fasttrack.evidence.statement import Statement

MIN_CONFIDENCE = 0.95
"""Of an evaluation's interval: a lower one makes any interval narrow enough."""


def contradictions(predicate: Predicate) -> Iterator[str]:
    """What a predicate says that can not be, whatever was measured."""
    parts = [value for _, value in predicate]
    for part in parts:
        if isinstance(part, Spread | Interval):
            yield from part.problems()
    for gate in getattr(predicate, "gates", ()):
        yield from _gate(gate)
    if isinstance(predicate, StressV1):
        for setting in predicate.settings:
            if setting.wrong > setting.iterations:
                yield f"{setting.delay}: {setting.wrong} of {setting.iterations} wrong"
    elif isinstance(predicate, ModelEvalV1):
        yield from _drop(predicate)
    elif isinstance(predicate, PerformanceV1):
        yield from _comparison(predicate)


def failure_of(statement: Statement) -> Fault | None:
    """What a statement that is otherwise in order fails by; None when it shows something."""
    predicate, problems = statement.predicate, statement.problems()
    if next(contradictions(predicate), ""):
        return Fault.CONTRADICTION
    if not problems:
        return None
    if predicate.inputs.undeclared:
        return Fault.UNDECLARED
    if isinstance(predicate, KernelTestV1 | RefusalV1):
        results = predicate.results
        if results.problems() and not results.failed:
            return Fault.SKIPPED
    if isinstance(predicate, RefusalV1) and not (predicate.refused and predicate.reasons):
        return Fault.ADMITTED
    execution = getattr(predicate, "execution", None)
    proofs = execution.problems() if isinstance(execution, Execution) else []
    unproven = [*proofs, *predicate.forgeable()]
    return Fault.EXECUTION if len(problems) == len(unproven) else Fault.FAILED


def said_no(statement: Statement) -> bool:
    """Whether something of the path failed, whatever else is wrong with the statement.

    A run in which a test failed may have read a file that nobody declared, too: that is told first,
    and the failure still contradicts every run that passed.
    """
    predicate = statement.predicate
    results = getattr(predicate, "results", None)
    if isinstance(results, TestResults) and results.failed:
        return True
    if any(not gate.passed for gate in getattr(predicate, "gates", ())):
        return True
    declared = predicate.inputs.model_copy(update={"undeclared": ()})
    alone = Statement(statement.predicate_type, predicate.model_copy(update={"inputs": declared}))
    return failure_of(alone) in {Fault.FAILED, Fault.ADMITTED}


def one_sided(measured: PerformanceV1) -> str:
    """How the sides can not be from one interleaved run; empty when they can."""
    ours, baseline, pairs = measured.ours.samples, measured.baseline.samples, measured.pairs
    if ours == baseline == pairs:
        return ""
    return f"{pairs} pairs of {ours} runs of the path and {baseline} of the baseline"


def unsure(evaluation: ModelEvalV1) -> str:
    """How little an interval says; empty when it is as sure as `MIN_CONFIDENCE`."""
    confidence = evaluation.drop.confidence
    return "" if confidence >= MIN_CONFIDENCE else f"an interval of {confidence:.0%} confidence"


def _gate(gate: Gate) -> Iterator[str]:
    if gate.killed > gate.controls:
        yield f"gate {gate.name} caught {gate.killed} of {gate.controls} negative controls"


def _drop(evaluation: ModelEvalV1) -> Iterator[str]:
    drop, interval = evaluation.baseline_score - evaluation.score, evaluation.drop
    if interval.low <= interval.high and not interval.low <= drop <= interval.high:
        yield f"a drop of {drop:g} is outside its own interval"


def _comparison(measured: PerformanceV1) -> Iterator[str]:
    named = measured.cell.values.get("metric", measured.metric)
    if named != measured.metric:
        yield f"the metric is {measured.metric}, the cell's {named!r}"
    if said := measured.odd_ratio():
        yield said
