# SPDX-License-Identifier: Apache-2.0
"""Evaluations: one task on both sides, with the same questions, and an interval of the drop."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from fasttrack.errors import InputError
from fasttrack.evidence.importers.reading import Source
from fasttrack.evidence.predicates import ModelEvalV1
from tests.evidence.importers.builders import (
    CASES,
    edited_json,
    edited_yaml,
    files,
    imported,
    put,
    sample,
    without,
)

Edit = Callable[[Any], Any]
STRICT = ("results", "gsm8k", "exact_match,strict-match")
STDERR = ("results", "gsm8k", "exact_match_stderr,strict-match")
SCORES = ("results", "scores", 0)


def evaluated(name: str, **changes: Any) -> ModelEvalV1:
    (statement,) = imported(name, **changes).statements
    assert isinstance(statement.predicate, ModelEvalV1)
    return statement.predicate


def side(name: str, edit: Edit, which: str) -> dict[str, list[Source]]:
    given = getattr(files(name), which)
    return {which: [edited_json(given[0], edit)]}


@pytest.mark.parametrize("name", ["lm-eval", "inspect"])
def test_scores_and_the_interval_are_those_of_both_files(name: str) -> None:
    found = evaluated(name)
    assert (found.score, found.baseline_score, found.samples) == (0.9386, 0.9409, 1319)
    errors = [math.sqrt(p * (1 - p) / 1318) for p in (0.9386, 0.9409)]
    half = 1.959964 * math.hypot(*errors)
    assert found.drop.low == pytest.approx(0.0023 - half, abs=2e-6)
    assert found.drop.high == pytest.approx(0.0023 + half, abs=2e-6)
    assert found.drop.confidence == 0.95
    assert (found.model, found.task, found.baseline) == ("example/model", "gsm8k", "auto")


def test_a_perfect_score_still_has_an_interval() -> None:
    def perfect(data: Any) -> None:
        put(STRICT, 1.0)(data)
        put(STDERR, 0.0)(data)

    both = side("lm-eval", perfect, "results") | {
        "baseline": [edited_json(sample("lm-eval-baseline.json"), perfect)]
    }
    found = evaluated("lm-eval", **both)
    assert found.drop.high == pytest.approx(1.96 * math.sqrt(2) * 1.5 / 1319, rel=1e-3)
    assert found.drop.low == -found.drop.high


@pytest.mark.parametrize("which", ["results", "baseline"])
@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (without(STRICT), "exact_match,strict-match"),
        (without(STDERR), "exact_match_stderr,strict-match"),
        (put(STDERR, "N/A"), "exact_match_stderr,strict-match"),
        (put(STRICT, 93.86), "a score from 0 to 1"),
        (put(STRICT, -0.1), "a score from 0 to 1"),
        (put(STDERR, -0.1), "a score from 0 to 1"),
        (without(("n-samples",)), "n-samples"),
        (without(("n-samples", "gsm8k")), "n-samples"),
        (put(("n-samples", "gsm8k", "effective"), 100), "n-samples"),
        (put(("config", "limit"), 100), "config.limit"),
        (put(("n-shot", "gsm8k"), 0), "n-shot"),
        (put(("versions", "gsm8k"), 2.0), "versions"),
        (put(("config", "gen_kwargs"), {"temperature": 1}), "config.gen_kwargs"),
        (put(("configs", "gsm8k", "num_fewshot"), 0), "configs"),
        (put(("higher_is_better", "gsm8k", "exact_match"), False), "more is better"),
        (without(("higher_is_better",)), "more is better"),
        (put(("model_name",), "another/model"), "another/model"),
        (without(("model_name",)), "example/model"),
        (without(("results",)), "no section `results`"),
        (without(("config",)), "no section `config`"),
        (without(("results", "gsm8k")), "gsm8k|no entry"),
    ],
)
def test_results_of_lm_eval_are_refused_for(edit: Edit, message: str, which: str) -> None:
    with pytest.raises(InputError, match=message):
        imported("lm-eval", **side("lm-eval", edit, which))


@pytest.mark.parametrize("which", ["results", "baseline"])
@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (put(("version",), 1), "`version` 1"),
        (put(("version",), True), "`version` True"),
        (put(("status",), "error"), "succeeded"),
        (put(("status",), "started"), "succeeded"),
        (put(("error",), {"message": "x"}), "succeeded"),
        (put(("invalidated",), True), "succeeded"),
        (put(("results", "completed_samples"), 1300), "1300 of 1319 samples"),
        (put((*SCORES, "unscored_samples"), 3), "samples without a score"),
        (put((*SCORES, "name"), "other"), "0 scores named 'match'"),
        (without((*SCORES, "metrics", "stderr")), "stderr"),
        (without((*SCORES, "metrics", "accuracy")), "accuracy"),
        (put((*SCORES, "metrics", "accuracy", "value"), 93.8), "a score from 0 to 1"),
        (put(("results",), None), "no section `results`"),
        (put(("eval", "model"), "another/model"), "another/model"),
        (put(("eval", "task"), 3), "eval.task"),
        (put(("eval", "task_args"), {"fewshot": 0}), "task_args"),
        (put(("eval", "config", "limit"), 100), "config"),
        (put(("eval", "dataset", "sample_ids"), [1]), "dataset"),
    ],
)
def test_a_log_of_inspect_is_refused_for(edit: Edit, message: str, which: str) -> None:
    with pytest.raises(InputError, match=message):
        imported("inspect", **side("inspect", edit, which))


def test_a_binary_log_is_refused_with_the_command_that_helps() -> None:
    with pytest.raises(InputError, match="inspect log dump"):
        imported("inspect", results=[Source("x.eval", b"PK\x03\x04...")])


@pytest.mark.parametrize("name", ["lm-eval", "inspect"])
def test_text_under_synthetic_acceptance_is_no_evidence(name: str) -> None:
    facts = sample(CASES[name].facts)
    path = ("cells", "gsm8k", "acceptance")
    with pytest.raises(InputError, match="synthetic"):
        imported(name, facts=edited_yaml(facts, put(path, "synthetic")))
    with pytest.raises(InputError, match="`acceptance: measured`"):
        imported(name, facts=edited_yaml(facts, put(path, "measured")))
    drafts = edited_yaml(files(name).map, put(("results", 0, "values", "draft_tokens"), 7))
    with pytest.raises(InputError, match="`acceptance: none`"):
        imported(name, map=drafts)


def test_one_cell_has_one_task() -> None:
    given_map = edited_yaml(files("lm-eval").map, put(("results", 0, "match"), "*"))
    with pytest.raises(InputError, match="one task per cell"):
        imported("lm-eval", map=given_map)


def test_a_task_of_which_less_is_better_is_refused_when_it_is_mapped() -> None:
    def edit(data: Any) -> None:
        data["results"][0] |= {"match": "wikitext", "metric": "word_perplexity,none"}

    with pytest.raises(InputError, match="more is better"):
        imported("lm-eval", map=edited_yaml(files("lm-eval").map, edit))


def test_a_name_that_the_server_gave_the_model_is_said_in_the_sidecar() -> None:
    def edit(data: Any) -> None:
        data["model_name"] = "served"

    both = side("lm-eval", edit, "results") | side("lm-eval", edit, "baseline")
    with pytest.raises(InputError, match="served_name"):
        imported("lm-eval", **both)
    facts = edited_yaml(files("lm-eval").facts, put(("served_name",), "served"))
    assert evaluated("lm-eval", facts=facts, **both).model == "example/model"


LOADED: dict[str, Edit] = {
    "lm-eval": put(("config", "model"), "vllm"),
    "inspect": put(("eval", "model"), "hf/example/model"),
}
"""A model that the tool runs in its own process."""


def library_call(facts: Any) -> None:
    """What a sidecar says where there was no endpoint."""
    facts["run"]["isolation"] = "process"
    del facts["endpoint"]
    if "served_name" in facts:
        facts["served_name"] = "hf/example/model"


@pytest.mark.parametrize("name", LOADED)
def test_a_library_call_is_imported_as_what_it_is_and_shows_nothing(name: str) -> None:
    given = files(name)
    sides = side(name, LOADED[name], "results") | side(name, LOADED[name], "baseline")
    (statement,) = imported(name, **sides, facts=edited_yaml(given.facts, library_call)).statements
    assert statement.predicate.run.isolation == "process"
    assert statement.problems() == ["the measured process could write its own result"]


NOT_ASKED = "in the tool's own process; want a model behind an endpoint"


@pytest.mark.parametrize("which", ["results", "baseline"])
def test_a_library_call_of_lm_eval_is_not_said_to_have_asked_an_endpoint(which: str) -> None:
    with pytest.raises(InputError, match=NOT_ASKED):
        imported("lm-eval", **side("lm-eval", LOADED["lm-eval"], which))


def test_a_library_call_of_inspect_is_not_said_to_have_asked_an_endpoint() -> None:
    edit = LOADED["inspect"]
    both = side("inspect", edit, "results") | side("inspect", edit, "baseline")
    # The name of a model tells how it was asked, and is compared first.
    named = edited_yaml(files("inspect").facts, put(("served_name",), "hf/example/model"))
    with pytest.raises(InputError, match=NOT_ASKED):
        imported("inspect", **both, facts=named)


UNKNOWN: dict[str, tuple[str, Edit]] = {
    "a plugin of Inspect": ("inspect", put(("eval", "model"), "own/example/model")),
    "a provider with a near name": ("inspect", put(("eval", "model"), "vllm2/example/model")),
    "no address of Inspect": ("inspect", put(("eval", "model_base_url"), None)),
    "a path as an address": ("inspect", put(("eval", "model_base_url"), "/models/example")),
    "an address without a host": ("inspect", put(("eval", "model_base_url"), "http://")),
    "another version of Inspect": ("inspect", put(("eval", "packages"), {"inspect_ai": "1.0"})),
    "no version of Inspect": ("inspect", put(("eval", "packages"), {})),
    "a plugin of lm-eval": ("lm-eval", put(("config", "model"), "my-inprocess-completions")),
    "a list for a model": ("lm-eval", put(("config", "model"), ["local-completions"])),
    "no address of lm-eval": ("lm-eval", put(("config", "model_args"), "model=example/model")),
    "another version of lm-eval": ("lm-eval", put(("lm_eval_version",), "1.0")),
    "no version of lm-eval": ("lm-eval", put(("lm_eval_version",), None)),
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_nothing_counts_as_served_but_a_known_client_at_an_address(what: str) -> None:
    name, edit = UNKNOWN[what]
    both = side(name, edit, "results") | side(name, edit, "baseline")
    if what in {"a plugin of Inspect", "a provider with a near name"}:
        model = "own" if "plugin" in what else "vllm2"
        both["facts"] = edited_yaml(
            files(name).facts, put(("served_name",), f"{model}/example/model")
        )
    with pytest.raises(InputError, match=NOT_ASKED):
        imported(name, **both)


def test_arguments_of_lm_eval_may_be_a_mapping() -> None:
    edit = put(("config", "model_args"), {"base_url": "https://engine.example/v1"})
    both = side("lm-eval", edit, "results") | side("lm-eval", edit, "baseline")
    assert evaluated("lm-eval", **both).endpoint == "vllm"


@pytest.mark.parametrize("name", LOADED)
def test_results_of_an_endpoint_need_a_sidecar_that_names_it(name: str) -> None:
    facts = edited_yaml(files(name).facts, without(("endpoint",)))
    with pytest.raises(InputError, match="behind an endpoint; want a model in the tool's") as told:
        imported(name, facts=facts)
    assert "there is no `endpoint`" in str(told.value)
