# SPDX-License-Identifier: Apache-2.0
"""Serving benchmarks: a throughput with its conditions, from both sides of one run, or nothing."""

from collections.abc import Callable
from typing import Any

import pytest

from fasttrack.errors import InputError
from fasttrack.evidence.importers.reading import Source
from fasttrack.evidence.predicates import PerformanceV1
from tests.evidence.importers.builders import (
    edited_json,
    edited_yaml,
    files,
    imported,
    put,
    sample,
    without,
)

Edit = Callable[[Any], Any]
APPENDED = sample("vllm-bench-append.jsonl")
VALUES = ("results", 0, "values")
CELL = ("cells", "decode-b1")


def bench(edit: Edit) -> list[Source]:
    """The appended file after an edit of its list of runs."""
    return [edited_json(APPENDED, edit)]


def every(key: str, value: Any) -> Edit:
    """An edit of one key of every run."""

    def edit(runs: Any) -> None:
        for run in runs:
            run[key] = value

    return edit


def no(key: str) -> Edit:
    def edit(runs: Any) -> None:
        for run in runs:
            run.pop(key)

    return edit


def measured(format_: str, **changes: Any) -> PerformanceV1:
    (statement,) = imported(format_, **changes).statements
    assert isinstance(statement.predicate, PerformanceV1)
    return statement.predicate


def test_the_rates_are_those_of_the_decode_alone() -> None:
    found = measured("vllm-bench")
    assert found.ours.median == pytest.approx(1000 / 1.25)
    assert found.baseline.median == pytest.approx(1000 / 2.0)
    assert found.ratio.median == pytest.approx(1.6)
    assert (found.pairs, found.ours.samples, found.acceptance_length) == (4, 4, 6.0)


@pytest.mark.parametrize(
    ("metric", "field", "better"),
    [
        ("ttft_ms", "median_ttft_ms", lambda t: t),
        ("request_latency_ms", "median_e2el_ms", lambda t: t),
        ("p90_interactivity", "p90_tpot_ms", lambda t: 1000 / t),
        ("decode_tokens_per_s", "mean_tpot_ms", lambda t: 1000 / t),
    ],
)
def test_each_metric_is_made_from_its_field(
    metric: str, field: str, better: Callable[[float], float]
) -> None:
    def edit(runs: Any) -> None:
        for run in runs:
            run[field] = 2.0 if run["fasttrack_backend"] == "latency_specialized" else 4.0

    given_map = edited_yaml(files("vllm-bench").map, put((*VALUES, "metric"), metric))
    found = measured("vllm-bench", results=bench(edit), map=given_map)
    assert (found.ours.median, found.baseline.median) == (better(2.0), better(4.0))
    assert found.ratio.median == 2.0
    with pytest.raises(InputError, match=field):
        imported("vllm-bench", results=bench(no_if_there(field)), map=given_map)


def no_if_there(key: str) -> Edit:
    def edit(runs: Any) -> None:
        for run in runs:
            run.pop(key, None)

    return edit


def test_runs_in_files_of_their_own_are_the_same_as_appended_ones() -> None:
    lines = APPENDED.raw.strip().split(b"\n")
    apart = [Source(f"{i}.json", line) for i, line in enumerate(lines)]
    assert imported("vllm-bench", results=apart) == imported("vllm-bench")


def test_one_object_over_several_lines_is_one_run() -> None:
    spread = Source("one.json", sample("vllm-bench-save.json").raw.replace(b", ", b",\n"))
    with pytest.raises(InputError, match="`ours` twice in a row"):
        imported("vllm-bench", results=[spread])


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (every("max_concurrency", None), "max_concurrency"),
        (every("max_concurrency", 2), "`batch` 2"),
        (every("total_input_tokens", 32 * 9), "`isl` 9"),
        (every("total_output_tokens", 32 * 10), "`osl` 10"),
        (every("spec_decode_draft_tokens", 5334 * 3), "`draft_tokens` 3"),
        (every("spec_decode_draft_tokens", 5334 * 7 + 1), "the same number of draft tokens"),
        (no("spec_decode_num_drafts"), "spec_decode_num_drafts"),
        (no("spec_decode_acceptance_length"), "spec_decode_acceptance_length"),
        (every("request_rate", 4.0), "the concurrency is the batch"),
        (no("request_rate"), "request_rate"),
        (every("ramp_up_strategy", "linear"), "ramp_up_strategy"),
        (every("failed", 1), "every request completed"),
        (every("completed", 31), "every request completed"),
        (no("failed"), "`failed`"),
        (no("completed"), "`completed`"),
        (no("num_prompts"), "`num_prompts`"),
        (no("date"), "`date`"),
        (no("mean_tpot_ms"), "mean_tpot_ms"),
        (every("mean_tpot_ms", 0), "above 0"),
        (every("mean_tpot_ms", "1.0"), "a number"),
        (every("mean_tpot_ms", True), "a number"),
        (no("fasttrack_run"), "fasttrack_run"),
        (every("fasttrack_run", "3" * 32), "the sidecar's run"),
        (no("fasttrack_backend"), "fasttrack_backend"),
        (every("fasttrack_backend", "other"), "fasttrack_backend"),
        (every("fasttrack_backend", ["auto"]), "fasttrack_backend"),
        (every("fasttrack_backend", "auto"), "twice in a row"),
        (lambda runs: runs.sort(key=lambda r: r["fasttrack_backend"]), "order in which they ran"),
        (lambda runs: runs.pop(2), "twice in a row"),
        (lambda runs: runs.__delitem__(slice(4, 8)), "at least 3"),
    ],
)
def test_a_bench_is_refused_for(edit: Edit, message: str) -> None:
    with pytest.raises(InputError, match=message):
        imported("vllm-bench", results=bench(edit))


def test_one_side_after_the_other_is_not_interleaved() -> None:
    def edit(runs: Any) -> None:
        dates = [run["date"] for run in runs]
        runs.sort(key=lambda r: r["fasttrack_backend"])
        for run, date in zip(runs, dates, strict=True):
            run["date"] = date

    with pytest.raises(InputError, match="one run of each side, in turns"):
        imported("vllm-bench", results=bench(edit))


def test_sides_of_other_acceptance_are_not_compared() -> None:
    def edit(runs: Any) -> None:
        for run in runs:
            if run["fasttrack_backend"] == "auto":
                run["spec_decode_acceptance_length"] = 5.0

    with pytest.raises(InputError, match="acceptance lengths 6 and 5"):
        imported("vllm-bench", results=bench(edit))


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"acceptance_length": "6"}, ""),
        ({"acceptance_length": "6.119"}, ""),
        ({"acceptance_length": "6.123"}, "length of 6, and `acceptance_length` 6.123"),
        ({"acceptance_length": "5.88"}, "length of 6, and `acceptance_length` 5.88"),
        ({"acceptance_length": "nan"}, "`acceptance_length` nan"),
        ({"acceptance_length": "six"}, "`acceptance_length` or `acceptance_rates` of the cell"),
        ({"acceptance_rates": "1,1,1,1,1,0,0"}, ""),
        ({"acceptance_rates": "1,1,1,1,0.5,0,0"}, "length of 6, and `acceptance_length` 5.5"),
        ({}, "a synthetic acceptance of any length"),
        ({"acceptance": "measured"}, "`acceptance` 'synthetic'"),
    ],
)
def test_the_runs_have_the_acceptance_that_the_cell_states(
    axes: dict[str, str], message: str
) -> None:
    def edit(data: Any) -> None:
        del data["results"][0]["values"]["acceptance_length"]
        data["results"][0]["values"] |= axes

    changed = {"map": edited_yaml(files("vllm-bench").map, edit)}
    if not message:
        assert measured("vllm-bench", **changed).acceptance_length == 6.0
        return
    with pytest.raises(InputError, match=message):
        imported("vllm-bench", **changed)


def test_a_cell_without_drafts_states_no_acceptance() -> None:
    def edit(data: Any) -> None:
        data["results"][0]["values"] |= {"draft_tokens": 0, "acceptance": "none"}

    with pytest.raises(InputError, match="`acceptance_length` without draft tokens"):
        imported("vllm-bench", map=edited_yaml(files("vllm-bench").map, edit))


def test_a_cell_without_drafts_takes_no_run_with_drafts_and_the_reverse() -> None:
    given = files("vllm-bench")

    def plain(data: Any) -> None:
        data["results"][0]["values"] |= {"draft_tokens": 0, "acceptance": "none"}
        data["results"][0]["values"].pop("acceptance_length", None)

    def unsaid(data: Any) -> None:
        plain(data)
        del data["results"][0]["values"]["draft_tokens"]
        data["results"][0]["values"]["metric"] = "ttft_ms"

    def bare(runs: Any) -> None:
        for run in runs:
            for key in [k for k in run if k.startswith("spec_decode")]:
                del run[key]

    facts = edited_yaml(given.facts, put((*CELL, "acceptance"), "none"))
    plain_map = edited_yaml(given.map, plain)
    assert (
        measured("vllm-bench", map=plain_map, facts=facts, results=bench(bare)).acceptance_length
        is None
    )
    with pytest.raises(InputError, match="`draft_tokens` 7"):
        imported("vllm-bench", map=plain_map, facts=facts)
    with pytest.raises(InputError, match="`draft_tokens` 0"):
        imported("vllm-bench", results=bench(bare))
    with pytest.raises(InputError, match="no axis `draft_tokens`"):
        imported("vllm-bench", map=edited_yaml(given.map, unsaid), facts=facts)
    with pytest.raises(InputError, match="`acceptance` 'none'"):
        imported(
            "vllm-bench",
            facts=facts,
            map=edited_yaml(given.map, put((*VALUES, "acceptance"), "none")),
        )


@pytest.mark.parametrize("metric", ["unit_time_us", "layer_time_us", "goodput", 3])
def test_a_client_measures_no_units_and_no_metrics_of_its_own(metric: Any) -> None:
    given_map = edited_yaml(files("vllm-bench").map, put((*VALUES, "metric"), metric))
    with pytest.raises(InputError, match="one of decode_tokens_per_s"):
        imported("vllm-bench", map=given_map)


def test_one_backend_on_both_sides_is_no_comparison() -> None:
    path = (*VALUES, "baseline.backend")
    given_map = edited_yaml(files("vllm-bench").map, put(path, "latency_specialized"))
    with pytest.raises(InputError, match="tell the sides apart"):
        imported("vllm-bench", map=given_map)


def test_unlabelled_runs_go_by_their_endpoint() -> None:
    given_map = edited_yaml(files("vllm-bench").map, put(("results", 0, "match"), "openai"))

    def edit(runs: Any) -> None:
        runs.pop()  # the warm-up
        every("label", None)(runs)

    assert measured("vllm-bench", results=bench(edit), map=given_map) == measured("vllm-bench")


AIPERF = "aiperf-path-0.json"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (put(("metadata", "submission_valid"), False), "submission_valid"),
        (put(("metadata", "submission_valid"), "true"), "submission_valid"),
        (put(("metadata", "submission_valid"), 1), "submission_valid"),
        (without(("metadata", "submission_valid")), "submission_valid"),
        (without(("metadata",)), "submission_valid"),
        (without(("metadata", "scenario")), "scenario"),
        (put(("was_cancelled",), True), "was_cancelled"),
        (put(("error_summary",), [{"count": 1}]), "error_summary"),
        (put(("runtime_submission_invalid_reasons",), ["x"]), "runtime_submission"),
        (without(("start_time",)), "start_time"),
        (put(("start_time",), "yesterday"), "start_time"),
        (without(("inter_token_latency",)), "inter_token_latency"),
        (put(("inter_token_latency", "unit"), "s"), "in 'ms'"),
        (without(("inter_token_latency", "p90")), "p90"),
        (put(("input_sequence_length", "avg"), 900.0), "`isl` 900"),
        (put(("output_sequence_length", "avg"), 9.0), "`osl` 9"),
    ],
)
def test_an_aiperf_run_is_refused_for(edit: Edit, message: str) -> None:
    results = [edited_json(sample(AIPERF), edit), *files("aiperf").results[1:]]
    with pytest.raises(InputError, match=message):
        imported("aiperf", results=results)


def test_aiperf_runs_of_one_side_after_the_other_are_not_interleaved() -> None:
    results = [
        edited_json(source, put(("start_time",), f"2026-11-20T11:0{i}:00Z"))
        for i, source in enumerate(files("aiperf").results)
    ]
    with pytest.raises(InputError, match="`ours` twice in a row"):
        imported("aiperf", results=results)


def test_aiperf_runs_without_a_baseline_are_asked_for_one() -> None:
    given = files("aiperf")
    with pytest.raises(InputError, match=r"--baseline: saw no file; .*--baseline FILE"):
        imported("aiperf", results=[*given.results, *given.baseline], baseline=[])


def test_aiperf_interactivity_is_what_nine_of_ten_users_get() -> None:
    found = measured("aiperf")
    assert found.ours.median == pytest.approx(1000 / (2.5 * 1.2))
    assert found.baseline.median == pytest.approx(1000 / (4.41 * 1.2))
    assert found.pairs == 3


def test_aiperf_decode_rate_is_of_all_users() -> None:
    given_map = edited_yaml(files("aiperf").map, put((*VALUES, "metric"), "decode_tokens_per_s"))
    assert measured("aiperf", map=given_map).ours.median == pytest.approx(8 * 1000 / 2.5)


def test_aiperf_with_drafts_needs_their_acceptance() -> None:
    given = files("aiperf")

    def drafts(data: Any) -> None:
        data["cells"]["agentx"] |= {"draft_tokens": 7, "acceptance": "measured"}

    def cell(data: Any) -> None:
        data["results"][0]["values"] |= {"draft_tokens": 7, "acceptance": "measured"}

    changed = {"facts": edited_yaml(given.facts, drafts), "map": edited_yaml(given.map, cell)}
    with pytest.raises(InputError, match="the tokens per verify window"):
        imported("aiperf", **changed)
    length = put(("cells", "agentx", "acceptance_length"), 3.5)
    changed["facts"] = edited_yaml(changed["facts"], length)
    assert measured("aiperf", **changed).acceptance_length == 3.5
