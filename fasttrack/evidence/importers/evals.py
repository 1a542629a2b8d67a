# SPDX-License-Identifier: Apache-2.0
"""What importers of evaluations share: the path's result against the fallback's, on one task."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field

from fasttrack.errors import InputError, Problem
from fasttrack.evidence.importers.base import (
    MAX_ENTRIES,
    Entry,
    Files,
    Imported,
    SharedFacts,
    convert,
    isolated,
    of_cell,
    same,
    statement,
)
from fasttrack.evidence.importers.comparison import Scored, drop_interval
from fasttrack.evidence.importers.reading import Source, read_yaml
from fasttrack.evidence.predicates.common import Execution, Record, Sha256, Word
from fasttrack.evidence.statement import Statement
from fasttrack.manifest.fields import FirstFormat, Identifier
from fasttrack.vocabulary import Kind


class EvalEntry(Entry):
    """A task to a cell; `match` is a pattern of task names."""

    task: Identifier
    """Name of the task in the manifest."""
    metric: Word
    """Which score of the task counts, such as `exact_match,strict-match`."""


class EvalMap(Record):
    """The map of an evaluation import."""

    map: FirstFormat
    """Version of this format."""
    results: tuple[EvalEntry, ...] = Field(min_length=1, max_length=MAX_ENTRIES)
    """Its entries."""


class EvalCell(Record):
    """What no evaluation tool knows about one cell."""

    execution: Execution
    """Kernels that were seen on the path's side, and fallbacks."""
    acceptance: Literal["none", "measured"]
    """Of draft tokens; text under synthetic acceptance means nothing."""


class EvalFacts(SharedFacts):
    """The sidecar of an evaluation import."""

    model: Word
    """Name of the model, `organisation/model`."""
    served_name: Word | None = None
    """How the tool names it, where that differs."""
    weights: Sha256
    """Digest of the weights."""
    baseline: Identifier
    """The backend that was compared with."""
    endpoint: Identifier | None = None
    """Engine whose HTTP endpoint was asked; absent for a library call."""
    cells: dict[Identifier, EvalCell] = Field(max_length=MAX_ENTRIES)
    """Id of a map's entry to its facts."""


@dataclass(frozen=True)
class Evaluation:
    """A result file of one side.

    Attributes:
        where: the file, for messages.
        model: which model the tool says that it asked.
        client: what of the tool spoke to the model.
        served: whether that is known to have asked an endpoint; else the model ran, for all that
            is known, in the tool's own process.
        settings: task to everything that must be equal on both sides.
        scored: the score of a task by the name of its metric; raises `InputError`.
    """

    where: str
    model: str
    client: str
    served: bool
    settings: Mapping[str, Mapping[str, Any]]
    scored: Callable[[str, str], Scored] = field(repr=False)


def import_evals(files: Files, read: Callable[[Source], Evaluation]) -> Imported:
    """Compares one result file with one of the baseline.

    Args:
        files: what is imported.
        read: the format's reader.

    Raises:
        InputError: the sides are not comparable, or a fact is missing.
    """
    if len(files.results) != 1 or len(files.baseline) != 1:
        saw = f"{len(files.results)} result files and {len(files.baseline)} of the baseline"
        raise InputError.one("--baseline", saw, "one file of each side")
    mapped, facts = read_yaml(files.map, EvalMap), read_yaml(files.facts, EvalFacts)
    ours, baseline = read(files.results[0]), read(files.baseline[0])
    if files.results[0].raw == files.baseline[0].raw:
        raise InputError.one(baseline.where, "the same bytes as the result", "the other side's")
    _check_model(ours, facts, files.facts)
    _check_model(baseline, facts, files.facts)
    _check_isolation((ours, baseline), facts, files.facts)

    def make(entry: EvalEntry, tasks: Sequence[str]) -> Statement:
        if len(tasks) > 1:
            saw = f"the tasks {', '.join(tasks[:5])}"
            raise InputError.one(f"entry '{entry.id}'", saw, "one task per cell")
        return _statement(entry, tasks[0], (ours, baseline), facts, files.facts)

    return convert(mapped.results, list(ours.settings), files.map.name, make)


def _check_model(side: Evaluation, facts: EvalFacts, source: Source) -> None:
    named = facts.served_name or facts.model
    if side.model != named:
        fix = f"say `served_name` in {source.name}, if it is the same model"
        raise InputError.one(side.where, f"the model '{side.model[:80]}'", f"'{named}'", fix)


def _check_isolation(sides: Sequence[Evaluation], facts: EvalFacts, source: Source) -> None:
    """A model in the tool's own process could write its own scores; one behind HTTP can not."""
    problems = [
        Problem(
            side.where,
            f"{side.client}, so {_asked(side.served)}",
            _asked(not side.served),
            f"see {source.name}",
        )
        for side in sides
        if side.served != (facts.endpoint is not None)
    ]
    if facts.endpoint is None:
        problems += isolated(facts, source, "process", "there is no `endpoint`, so a library call")
    else:
        problems += isolated(facts, source, "harness", "a client of an `endpoint` judged")
    if problems:
        raise InputError(problems)


def _asked(served: bool) -> str:
    return "a model behind an endpoint" if served else "a model in the tool's own process"


def _statement(
    entry: EvalEntry,
    task: str,
    sides: tuple[Evaluation, Evaluation],
    facts: EvalFacts,
    source: Source,
) -> Statement:
    ours, baseline = sides
    cell = of_cell(facts.cells, entry, source)
    problems = same(entry, "hardware", facts.machine.hardware, f"{source.name}: machine")
    wanted = "measured" if entry.values.get("draft_tokens") else "none"
    if cell.acceptance != wanted:
        where = f"{source.name}: cells.{entry.id}"
        problems.append(Problem(where, f"`acceptance: {cell.acceptance}`", f"`{wanted}`"))
    problems += _differences(task, ours, baseline)
    if problems:
        raise InputError(problems)
    score, fallback = (side.scored(task, entry.metric) for side in sides)
    if score.samples != fallback.samples:
        saw = f"{score.samples} samples of '{task}' against {fallback.samples}"
        raise InputError.one(baseline.where, saw, "the same samples on both sides")
    fields = {
        "model": facts.model,
        "weights": facts.weights,
        "task": entry.task,
        "samples": score.samples,
        "score": score.score,
        "baseline": facts.baseline,
        "baseline_score": fallback.score,
        "drop": drop_interval(score, fallback),
        "endpoint": facts.endpoint,
        "execution": cell.execution,
    }
    return statement(Kind.MODEL_EVAL, entry, facts, source, fields)


def _differences(task: str, ours: Evaluation, baseline: Evaluation) -> list[Problem]:
    """Settings of a task that are not the same on both sides."""
    if task not in baseline.settings:
        return [Problem(baseline.where, f"no task '{task}'", "the tasks of the other side")]
    left, right = ours.settings[task], baseline.settings[task]
    return [
        Problem(baseline.where, f"another `{name}` of '{task}'", "the other side's")
        for name in sorted(left.keys() | right.keys())
        if left.get(name) != right.get(name)
    ]
