# SPDX-License-Identifier: Apache-2.0
"""What importers of serving benchmarks share: complete conditions, and both sides of one run.

A throughput without its conditions is no evidence. Every condition of the cell is compared with
what the result or the sidecar says; nothing is filled in from the map alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from fasttrack.errors import InputError, Problem
from fasttrack.evidence.claims import ACCEPTANCE_SLACK, claimed_length, same_acceptance
from fasttrack.evidence.importers.base import (
    MAX_ENTRIES,
    Entry,
    SharedFacts,
    isolated,
    same,
    statement,
)
from fasttrack.evidence.importers.comparison import Sample, paired
from fasttrack.evidence.importers.reading import Source
from fasttrack.evidence.predicates.common import Execution, Record
from fasttrack.evidence.predicates.performance_v1 import RATES
from fasttrack.evidence.statement import Statement
from fasttrack.manifest.conditions import NEEDED
from fasttrack.manifest.fields import FirstFormat, Identifier
from fasttrack.manifest.words import Acceptance, Metric
from fasttrack.vocabulary import Kind

SERVING_METRICS = (
    Metric.DECODE_TOKENS_PER_S,
    Metric.TTFT_MS,
    Metric.REQUEST_LATENCY_MS,
    Metric.P90_INTERACTIVITY,
)
"""Metrics that a client of a server can measure; times of units and layers are not among them."""

AcceptanceLength = Annotated[float, Field(ge=1, le=1025, allow_inf_nan=False)]


class BenchMap(Record):
    """The map of a benchmark import; `match` is a pattern of benchmark names."""

    map: FirstFormat
    """Version of this format."""
    results: tuple[Entry, ...] = Field(min_length=1, max_length=MAX_ENTRIES)
    """Its entries; the values are the cell of one claim."""


class BenchCell(Record):
    """What no benchmark client knows about one cell."""

    acceptance: Acceptance
    """Where the acceptance of draft tokens came from; `none` without draft tokens."""
    execution: Execution
    """Kernels that were seen on the path's side, and fallbacks."""


class BenchFacts(SharedFacts):
    """The sidecar of a benchmark import; `machine` is the one that both sides ran on."""

    cells: dict[Identifier, BenchCell] = Field(max_length=MAX_ENTRIES)
    """Id of a map's entry to its facts."""


@dataclass(frozen=True)
class Measured:
    """One run of one side.

    Attributes:
        where: the run, for messages.
        side: whose.
        value: of the cell's metric.
        conditions: axes of the cell as this run had them; None where nothing tells.
        acceptance_length: tokens per verify window; None without draft tokens.
    """

    where: str
    side: Literal["ours", "baseline"]
    value: float
    conditions: dict[str, int | None]
    acceptance_length: float | None


def metric_of(entry: Entry) -> Metric:
    """The metric of a cell.

    Raises:
        InputError: it has none, or one that a client can not measure.
    """
    word = entry.values.get("metric")
    metric = next((known for known in SERVING_METRICS if known == word), None)
    if metric is None:
        saw = "no axis `metric`" if word is None else f"the metric {word!r}"
        want = f"one of {', '.join(SERVING_METRICS)}"
        raise InputError.one(f"entry '{entry.id}'", saw, want)
    return metric


def performance(
    entry: Entry, runs: Sequence[Measured], cell: BenchCell, shared: SharedFacts, source: Source
) -> Statement:
    """The statement of one cell from both sides' runs, in the order in which they ran.

    Raises:
        InputError: a condition is missing or another one, or the sides were not interleaved.
    """
    metric = metric_of(entry)
    problems = _run_problems(entry, cell, shared, source)
    for run in runs:
        for axis, value in run.conditions.items():
            asked = axis in NEEDED[metric] or axis in entry.values
            if asked or (axis == "draft_tokens" and value):
                problems += same(entry, axis, value, run.where)
    problems += _acceptance_problems(entry, runs)
    if problems:
        raise InputError(problems[:100])
    samples = [Sample(run.side, run.value, run.where) for run in runs]
    pairs = paired(samples, metric in RATES, f"entry '{entry.id}'")
    lengths = {side: _mean_length(runs, side) for side in ("ours", "baseline")}
    _check_same_acceptance(entry, **lengths)
    _check_claimed_acceptance(entry, **lengths)
    fields = pairs.fields() | {
        "metric": metric,
        "acceptance_length": lengths["ours"] or None,
        "execution": cell.execution,
    }
    return statement(Kind.PERFORMANCE, entry, shared, source, fields)


def _run_problems(
    entry: Entry, cell: BenchCell, shared: SharedFacts, source: Source
) -> list[Problem]:
    machine, where = shared.machine, f"{source.name}: machine"
    problems = isolated(shared, source, "harness", "a client of a server keeps the time")
    problems += same(entry, "acceptance", str(cell.acceptance), f"{source.name}: cells.{entry.id}")
    for side in ("ours", "baseline"):
        problems += same(entry, f"{side}.hardware", machine.hardware, where)
        problems += same(entry, f"{side}.gpu_count", machine.count, where)
        if f"{side}.backend" not in entry.values:
            saw = f"no axis `{side}.backend`"
            problems.append(Problem(f"entry '{entry.id}'", saw, "what runs on both sides"))
    return problems


def _acceptance_problems(entry: Entry, runs: Sequence[Measured]) -> list[Problem]:
    drafts = bool(entry.values.get("draft_tokens"))
    want = "the tokens per verify window" if drafts else "none without draft tokens"
    problems = [
        Problem(run.where, f"an acceptance length {run.acceptance_length}", want)
        for run in runs
        if (run.acceptance_length is not None) != drafts
    ]
    if drafts == (entry.values.get("acceptance") == Acceptance.NONE):
        saw = f"`acceptance` {entry.values.get('acceptance')!r}"
        want = "`none` without draft tokens, else where the acceptance comes from"
        problems.append(Problem(f"entry '{entry.id}'", saw, want))
    stated = [axis for axis in ("acceptance_length", "acceptance_rates") if axis in entry.values]
    if stated and not drafts:
        saw = f"`{stated[0]}` without draft tokens"
        problems.append(Problem(f"entry '{entry.id}'", saw, "no such axis"))
    return problems


def _check_same_acceptance(entry: Entry, ours: float, baseline: float) -> None:
    if not same_acceptance(ours, baseline):
        saw = f"acceptance lengths {ours:g} and {baseline:g}"
        want = f"sides that differ by at most {ACCEPTANCE_SLACK:.0%}"
        raise InputError.one(f"entry '{entry.id}'", saw, want)


def _check_claimed_acceptance(entry: Entry, ours: float, baseline: float) -> None:
    """The sides may differ by the slack, and neither from what the claim states by more."""
    where = f"entry '{entry.id}'"
    try:
        claimed = claimed_length(entry.values)
    except ValueError as error:
        saw = f"`acceptance_length` or `acceptance_rates` of the cell: {error}"
        raise InputError.one(where, saw, "numbers, as the claim has them") from error
    if claimed is None:
        if entry.values.get("acceptance") == Acceptance.SYNTHETIC:
            want = "`acceptance_length` or `acceptance_rates`, as the claim states it"
            raise InputError.one(where, "a synthetic acceptance of any length", want)
        return
    for length in (ours, baseline):
        if not same_acceptance(length, claimed):
            saw = f"an acceptance length of {length:g}, and `acceptance_length` {claimed:g}"
            raise InputError.one(where, saw, f"at most {ACCEPTANCE_SLACK:.0%} from it")


def _mean_length(runs: Sequence[Measured], side: str) -> float:
    known = [run.acceptance_length or 0.0 for run in runs if run.side == side]
    return sum(known) / len(known) if known else 0.0
