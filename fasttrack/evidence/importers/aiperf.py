# SPDX-License-Identifier: Apache-2.0
"""`profile_export_aiperf.json` of an AIPerf scenario: `performance` statements only.

One file per run: the results are the path's runs, `--baseline` the others; their start times must
alternate. A run must have followed the scenario's rules (`metadata.submission_valid: true`). The
tool knows neither concurrency in one stable place nor speculation, so the sidecar states them.
"""

from collections.abc import Sequence
from datetime import datetime
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
    of_cell,
    same,
)
from fasttrack.evidence.importers.reading import Source, number, read_object, read_yaml
from fasttrack.evidence.importers.serving import (
    AcceptanceLength,
    BenchCell,
    BenchMap,
    Measured,
    metric_of,
    performance,
)
from fasttrack.evidence.statement import Statement
from fasttrack.manifest.fields import Count, CountOrZero, Identifier
from fasttrack.manifest.words import Metric

_FIELDS = {
    Metric.TTFT_MS: ("time_to_first_token", "p50"),
    Metric.REQUEST_LATENCY_MS: ("request_latency", "p50"),
    Metric.DECODE_TOKENS_PER_S: ("inter_token_latency", "avg"),
    Metric.P90_INTERACTIVITY: ("inter_token_latency", "p90"),
}
"""Metric to the block and statistic that it is made from; all are times in ms."""

_Run = tuple[Source, Literal["ours", "baseline"], dict[str, Any]]
"""A file, whose run it holds, and its JSON object."""


class AIPerfCell(BenchCell):
    """What an AIPerf export does not say about one cell."""

    backend: Identifier
    """What ran on the path's side."""
    baseline_backend: Identifier
    """What ran on the other side."""
    concurrency: Count
    """Users at once."""
    draft_tokens: CountOrZero
    """Draft tokens per verify window, as the server was started."""
    acceptance_length: AcceptanceLength | None = None
    """Tokens per verify window on both sides, as the server counted them."""


class AIPerfFacts(SharedFacts):
    """The sidecar of an AIPerf import."""

    cells: dict[Identifier, AIPerfCell] = Field(max_length=MAX_ENTRIES)
    """Id of a map's entry to its facts."""


def import_aiperf(files: Files) -> Imported:
    """Reads AIPerf exports; see `Importer`. The map names scenarios."""
    if not files.baseline:
        fix = "name the files of the other side by `--baseline FILE`, once for each"
        raise InputError.one("--baseline", "no file", "runs of both sides, in turns", fix)
    mapped, facts = read_yaml(files.map, BenchMap), read_yaml(files.facts, AIPerfFacts)
    runs: list[_Run] = [(source, "ours", read_object(source)) for source in files.results]
    runs += [(source, "baseline", read_object(source)) for source in files.baseline]
    for source, _, data in runs:
        _check_valid(source, data)
    runs.sort(key=_started)

    def make(entry: Entry, names: Sequence[str]) -> Statement:
        cell = of_cell(facts.cells, entry, files.facts)
        where = f"{files.facts.name}: cells.{entry.id}"
        problems = same(entry, "ours.backend", cell.backend, where)
        problems += same(entry, "baseline.backend", cell.baseline_backend, where)
        if problems:
            raise InputError(problems)
        measured = [_measured(entry, run, cell) for run in runs if _scenario(run) in names]
        return performance(entry, measured, cell, facts, files.facts)

    names = list(dict.fromkeys(_scenario(run) for run in runs))
    return convert(mapped.results, names, files.map.name, make)


def _check_valid(source: Source, data: dict[str, Any]) -> None:
    """Only a run that followed its scenario to the end is comparable with anything."""
    metadata = data.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    problems = []
    if metadata.get("submission_valid") is not True:
        saw = f"`metadata.submission_valid` {str(metadata.get('submission_valid'))[:40]}"
        reasons = str(metadata.get("submission_invalid_reasons", ""))[:200]
        problems.append(Problem(source.name, f"{saw} {reasons}".strip(), "true"))
    if not isinstance(metadata.get("scenario"), str):
        problems.append(Problem(source.name, "no `metadata.scenario`", "a run of a scenario"))
    for key in ("was_cancelled", "error_summary", "runtime_submission_invalid_reasons"):
        if data.get(key):
            problems.append(Problem(source.name, f"`{key}`", "a run that ended well"))
    if problems:
        raise InputError(problems)


def _scenario(run: _Run) -> str:
    return str(run[2]["metadata"]["scenario"])


def _started(run: _Run) -> datetime:
    source, _, data = run
    text = data.get("start_time")
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        moment = None
    if moment is None:
        raise InputError.one(source.name, f"`start_time` {str(text)[:40]!r}", "a moment in UTC")
    return moment.replace(tzinfo=None)  # AIPerf writes UTC, with and without saying so


def _measured(entry: Entry, run: _Run, cell: AIPerfCell) -> Measured:
    source, side, data = run
    metric = metric_of(entry)
    name, statistic = _FIELDS[metric]
    value = number(_block(source, data, name, "ms"), statistic, f"{source.name}: {name}")
    if metric is Metric.DECODE_TOKENS_PER_S:
        value = cell.concurrency * 1000 / value
    elif metric is Metric.P90_INTERACTIVITY:
        value = 1000 / value
    conditions: dict[str, int | None] = {
        "batch": cell.concurrency,
        "isl": _mean_length(source, data, "input_sequence_length"),
        "osl": _mean_length(source, data, "output_sequence_length"),
        "draft_tokens": cell.draft_tokens,
    }
    return Measured(source.name, side, value, conditions, cell.acceptance_length)


def _mean_length(source: Source, data: dict[str, Any], name: str) -> int:
    block = _block(source, data, name, "tokens")
    return round(number(block, "avg", f"{source.name}: {name}"))


def _block(source: Source, data: dict[str, Any], name: str, unit: str) -> dict[str, Any]:
    block = data.get(name)
    if not isinstance(block, dict):
        raise InputError.one(source.name, f"no block `{name}`", "an export of a streaming run")
    if block.get("unit") != unit:
        saw = f"`{name}` in {str(block.get('unit'))[:20]!r}"
        raise InputError.one(source.name, saw, f"in {unit!r}")
    return block
