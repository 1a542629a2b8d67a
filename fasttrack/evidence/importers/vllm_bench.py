# SPDX-License-Identifier: Apache-2.0
"""`vllm bench serve --save-result` and `--append-result`: `performance` statements only.

One file or several, each with one JSON object a line; together they are the runs of both sides, in
the order in which they ran. The tool records neither its version nor the server's backend, so each
run must say whose it is:

    --metadata fasttrack_run=<run id> fasttrack_backend=<backend>  --label <name for the map>

Decode tokens per second are concurrency x 1000 / mean TPOT, which leaves prefill out; the tool's
own `output_throughput` holds it. P90 interactivity is 1000 / p90 TPOT, what nine of ten users get.
"""

from collections.abc import Sequence
from typing import Any, Literal

from fasttrack.errors import InputError, Problem
from fasttrack.evidence.importers.base import Entry, Files, Imported, convert, of_cell
from fasttrack.evidence.importers.reading import Source, json_object, number, read_yaml, whole
from fasttrack.evidence.importers.serving import (
    BenchFacts,
    BenchMap,
    Measured,
    metric_of,
    performance,
)
from fasttrack.evidence.statement import Statement
from fasttrack.manifest.words import Metric

MAX_RUNS = 1024
RUN, BACKEND = "fasttrack_run", "fasttrack_backend"
_TIMES = {
    Metric.TTFT_MS: "median_ttft_ms",
    Metric.REQUEST_LATENCY_MS: "median_e2el_ms",
    Metric.DECODE_TOKENS_PER_S: "mean_tpot_ms",
    Metric.P90_INTERACTIVITY: "p90_tpot_ms",
}
"""Metric to the field that it is made from."""
_RAMPS = ("ramp_up_strategy", "rps_change_events")

_Run = tuple[str, dict[str, Any]]
"""Place of a run, and its JSON object."""


def import_vllm_bench(files: Files) -> Imported:
    """Reads results of `vllm bench serve`; see `Importer`."""
    if files.baseline:
        want = "both sides among the results, as `fasttrack_backend` tells them apart"
        raise InputError.one("--baseline", files.baseline[0].name, want)
    mapped, facts = read_yaml(files.map, BenchMap), read_yaml(files.facts, BenchFacts)
    runs = _in_order([run for source in files.results for run in _runs(source)])

    def make(entry: Entry, names: Sequence[str]) -> Statement:
        cell = of_cell(facts.cells, entry, files.facts)
        measured = [_measured(entry, run, facts.run.run) for run in runs if _name(run) in names]
        return performance(entry, measured, cell, facts, files.facts)

    names = list(dict.fromkeys(_name(run) for run in runs))
    return convert(mapped.results, names, files.map.name, make)


def _runs(source: Source) -> list[_Run]:
    """The runs of one file: an object a line, or one object over several lines."""
    text = source.raw.strip()
    lines = [line for line in text.split(b"\n") if line.strip()]
    if len(lines) > 1 and not lines[0].rstrip().endswith(b"}"):
        return [(source.name, json_object(text, source.name))]
    if len(lines) > MAX_RUNS:
        raise InputError.one(source.name, f"{len(lines):,} lines", f"at most {MAX_RUNS:,} runs")
    if not lines:
        raise InputError.one(source.name, "an empty file", "results of `vllm bench serve`")
    places = [f"{source.name}:{i}" for i in range(1, len(lines) + 1)]
    return [(where, json_object(line, where)) for where, line in zip(places, lines, strict=True)]


def _in_order(runs: Sequence[_Run]) -> Sequence[_Run]:
    """The same runs, whose dates do not run backwards."""
    dates = []
    for where, run in runs:
        date = run.get("date")
        if not isinstance(date, str) or len(date) != len("YYYYmmdd-HHMMSS"):
            raise InputError.one(where, f"`date` {str(date)[:40]!r}", "YYYYmmdd-HHMMSS")
        dates.append(date)
    for i in range(1, len(runs)):
        if dates[i] < dates[i - 1]:
            want = "files in the order in which they ran"
            raise InputError.one(runs[i][0], f"{dates[i]} behind {dates[i - 1]}", want)
    return runs


def _name(run: _Run) -> str:
    """What the map calls a run: its label, or the kind of endpoint where it has none."""
    where, data = run
    name = data.get("label") or data.get("endpoint_type") or data.get("backend")
    if not isinstance(name, str):
        raise InputError.one(where, "no `label`", "a name that the map can speak of")
    return name


def _measured(entry: Entry, run: _Run, run_id: str) -> Measured:
    where, data = run
    metric = metric_of(entry)
    problems = [*_unfinished(where, data), *_open_loop(where, data)]
    if data.get(RUN) != run_id:
        saw = f"`{RUN}` {str(data.get(RUN))[:40]!r}"
        problems.append(Problem(where, saw, f"{run_id!r}, the sidecar's run"))
    if problems:
        raise InputError(problems)
    value = number(data, _TIMES[metric], where)
    concurrency = data.get("max_concurrency")
    if metric is Metric.DECODE_TOKENS_PER_S:
        value = number(data, "max_concurrency", where) * 1000 / value
    elif metric is Metric.P90_INTERACTIVITY:
        value = 1000 / value
    draft_tokens, acceptance_length = _speculation(where, data)
    conditions = {
        "batch": concurrency if type(concurrency) is int else None,
        "isl": _each(data, "total_input_tokens", where),
        "osl": _each(data, "total_output_tokens", where),
        "draft_tokens": draft_tokens,
    }
    return Measured(where, _side(entry, data, where), value, conditions, acceptance_length)


def _unfinished(where: str, data: dict[str, Any]) -> list[Problem]:
    """Requests that failed or were not sent make every figure of the run better."""
    failed, done, asked = (whole(data, k, where) for k in ("failed", "completed", "num_prompts"))
    if failed or done != asked or not done:
        saw = f"{done} of {asked} requests completed, {failed} failed"
        return [Problem(where, saw, "a run in which every request completed")]
    return []


def _open_loop(where: str, data: dict[str, Any]) -> list[Problem]:
    """Only without a request rate is the concurrency the batch."""
    problems = []
    if data.get("request_rate") != "inf":
        saw = f"`request_rate` {str(data.get('request_rate'))[:40]!r}"
        problems.append(Problem(where, saw, "'inf': then the concurrency is the batch"))
    ramps = [name for name in _RAMPS if data.get(name)]
    return problems + [Problem(where, f"`{name}`", "a steady load") for name in ramps]


def _side(entry: Entry, data: dict[str, Any], where: str) -> Literal["ours", "baseline"]:
    backends = {side: entry.values.get(f"{side}.backend") for side in ("ours", "baseline")}
    backend = data.get(BACKEND)
    if backends["ours"] == backends["baseline"]:
        saw = f"the backend {backends['ours']!r} on both sides"
        raise InputError.one(f"entry '{entry.id}'", saw, "axes that tell the sides apart")
    if isinstance(backend, str):
        if backend == backends["ours"]:
            return "ours"
        if backend == backends["baseline"]:
            return "baseline"
    want = f"{backends['ours']!r} or {backends['baseline']!r}"
    raise InputError.one(where, f"`{BACKEND}` {str(backend)[:40]!r}", want)


def _each(data: dict[str, Any], key: str, where: str) -> int:
    """Tokens per request, to the nearest whole one."""
    return round(whole(data, key, where) / whole(data, "completed", where))


def _speculation(where: str, data: dict[str, Any]) -> tuple[int, float | None]:
    """Draft tokens per verify window and its acceptance length; 0 and None without any."""
    if not any(key.startswith("spec_decode_") for key in data):
        return 0, None
    drafts = whole(data, "spec_decode_num_drafts", where)
    tokens = whole(data, "spec_decode_draft_tokens", where)
    if not drafts or tokens % drafts:
        saw = f"{tokens} draft tokens in {drafts} drafts"
        raise InputError.one(where, saw, "the same number of draft tokens in every draft")
    return tokens // drafts, number(data, "spec_decode_acceptance_length", where)
