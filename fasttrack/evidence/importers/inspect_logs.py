# SPDX-License-Identifier: Apache-2.0
"""Logs of Inspect in JSON: `model-eval` statements only.

Two logs: the path's and the baseline's, of one task. The map's `metric` is `scorer/metric`, such as
`match/accuracy`; the standard error is the scorer's own `stderr`. A log in the binary format is
turned into JSON by `inspect log dump`.
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

_SETTINGS = ("task_version", "task_args", "dataset", "solver", "solver_args", "config")
"""Keys of `eval` that change what is asked."""
_CLIENTS: Clients = {
    "0.3.": frozenset({"llama-cpp-python", "ollama", "openai", "openai-api", "sglang", "vllm"})
}
"""Providers that ask the server at `eval.model_base_url`. Others may load the model themselves."""
_ZIP = b"PK\x03\x04"
_section = partial(section, want="a log of Inspect")


def import_inspect(files: Files) -> Imported:
    """Reads logs of Inspect; see `Importer`."""
    return import_evals(files, read_inspect)


def read_inspect(source: Source) -> Evaluation:
    """One log.

    Raises:
        InputError: it is none, or its evaluation did not end well.
    """
    if source.raw.startswith(_ZIP):
        raise InputError.one(source.name, "a binary log", "JSON", "inspect log dump FILE")
    data, where = read_object(source), source.name
    if data.get("version") != 2 or isinstance(data.get("version"), bool):
        raise InputError.one(where, f"`version` {str(data.get('version'))[:40]}", "2")
    if data.get("status") != "success" or data.get("error") or data.get("invalidated"):
        saw = f"`status` {str(data.get('status'))[:40]!r}"
        raise InputError.one(where, saw, "an evaluation that succeeded, no sample invalidated")
    spec, results = _section(data, "eval", where), _section(data, "results", where)
    task, model = spec.get("task"), spec.get("model")
    if not isinstance(task, str) or not isinstance(model, str):
        raise InputError.one(where, "no `eval.task` or no `eval.model`", "both")
    settings = {task: {name: spec.get(name) for name in _SETTINGS}}

    def scored(_: str, metric: str) -> Scored:
        return _scored(results, metric, f"{where}: results")

    packages = spec.get("packages")
    version = packages.get("inspect_ai") if isinstance(packages, dict) else None
    asked = Asked(model.partition("/")[0], version, spec.get("model_base_url"))
    client, served = f"inspect_ai {asked.version!s:.40} with {asked}", asked.is_served(_CLIENTS)
    return Evaluation(where, model, client, served, settings, scored)


def _scored(results: Mapping[str, Any], metric: str, where: str) -> Scored:
    total, done = (whole(results, f"{name}_samples", where) for name in ("total", "completed"))
    if done != total or not total:
        raise InputError.one(where, f"{done} of {total} samples completed", "all of them")
    scorer, _, name = metric.partition("/")
    known = results.get("scores")
    scores = [s for s in known if isinstance(s, dict)] if isinstance(known, list) else []
    fitting = [s for s in scores if s.get("name") == scorer]
    if len(fitting) != 1:
        saw = f"{len(fitting)} scores named '{scorer[:40]}'"
        raise InputError.one(where, saw, "one; the map's `metric` is `scorer/metric`")
    if fitting[0].get("unscored_samples"):
        raise InputError.one(where, "samples without a score", "a score of every sample")
    metrics = _section(fitting[0], "metrics", where)
    score = finite(_section(metrics, name, where), "value", f"{where}: {metric}")
    stderr = finite(_section(metrics, "stderr", where), "value", f"{where}: {scorer}/stderr")
    return Scored.checked(score, stderr, total, metric, where)
