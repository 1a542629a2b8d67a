# SPDX-License-Identifier: Apache-2.0
"""Results of lm-eval (`results_*.json`): `model-eval` statements only.

Two files: the path's and the baseline's. The interval of the drop is computed from both standard
errors; `comparison.drop_interval` says how. Only scores from 0 to 1 of which more is better count.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from fasttrack.errors import InputError
from fasttrack.evidence.importers.asked import Asked, Clients
from fasttrack.evidence.importers.base import Files, Imported
from fasttrack.evidence.importers.comparison import Scored
from fasttrack.evidence.importers.evals import Evaluation, import_evals
from fasttrack.evidence.importers.reading import Source, finite, read_object, section, whole

_PER_TASK = ("versions", "n-shot", "n-samples", "configs")
"""Sections with one value per task; both sides must have the same."""
_PER_RUN = ("limit", "gen_kwargs", "random_seed", "fewshot_seed")
"""Keys of `config` that change what is asked."""
_CLIENTS: Clients = {
    "0.4.": frozenset(
        {
            *("local-chat-completions", "local-completions"),
            *("openai-chat-completions", "openai-completions", "sglang-generate"),
        }
    )
}
"""Kinds of model that ask the server at `base_url`. Others may load the model themselves."""
_section = partial(section, want="results of lm-eval")


def import_lm_eval(files: Files) -> Imported:
    """Reads results of lm-eval; see `Importer`."""
    return import_evals(files, read_lm_eval)


def read_lm_eval(source: Source) -> Evaluation:
    """One result file.

    Raises:
        InputError: it is not one.
    """
    data = read_object(source)
    results = _section(data, "results", source.name)
    config = _section(data, "config", source.name)
    per_run = {f"config.{name}": config.get(name) for name in _PER_RUN}
    settings = {
        task: per_run | {name: _optional(data, name).get(task) for name in _PER_TASK}
        for task in results
    }

    def scored(task: str, metric: str) -> Scored:
        return _scored(data, task, metric, f"{source.name}: results.{task}")

    asked = Asked(config.get("model"), data.get("lm_eval_version"), _address(config))
    client, served = f"lm-eval {asked.version!s:.40} with {asked}", asked.is_served(_CLIENTS)
    return Evaluation(source.name, str(data.get("model_name")), client, served, settings, scored)


def _address(config: Mapping[str, Any]) -> object:
    """What `model_args` say after `base_url`, as the text or the mapping that they may be."""
    given = config.get("model_args")
    if isinstance(given, str):
        pairs = (pair.partition("=") for pair in given.split(","))
        given = {name.strip(): value for name, _, value in pairs}
    return given.get("base_url") if isinstance(given, dict) else None


def _scored(data: Mapping[str, Any], task: str, metric: str, where: str) -> Scored:
    result = _section(_section(data, "results", where), task, where)
    name, comma, filtered = metric.partition(",")
    better = _optional(_optional(data, "higher_is_better"), task).get(name)
    if better is not True:
        saw = f"`higher_is_better` {str(better)[:40]} for `{name}`"
        raise InputError.one(where, saw, "a score of which more is better")
    score = finite(result, metric, where)
    stderr = finite(result, f"{name}_stderr{comma}{filtered}", where)
    samples = whole(_section(_section(data, "n-samples", where), task, where), "effective", where)
    if not samples:
        raise InputError.one(where, "no samples", "some")
    return Scored.checked(score, stderr, samples, metric, where)


def _optional(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name)
    return value if isinstance(value, dict) else {}
