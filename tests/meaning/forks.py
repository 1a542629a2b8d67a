# SPDX-License-Identifier: Apache-2.0
"""Runs projects, each in a process of its own that is forked off one which has loaded everything.

A program, not a module of the tests: it is started on an empty path, so that the projects' packages
`tests` and `reference` are the only ones of their names. It reads one JSON job a line and answers
each with one line. A job has `files` to
write, and

* `states` and `events`: import `module`, make the `call`, and say which states have another value
  and which of the events the interpreter reported; or
* `shows`: import `module`, and say what the expression gives; or
* `pytest`: run the project's tests, and say how many ended how.
"""

import gc
import importlib
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import hypothesis  # noqa: F401  (loaded once for all that are forked)
import numpy.testing
import pytest
import torch
import torch._dynamo.config

OPERATORS = "host.shared.operators"
Job = Mapping[str, Any]


def main() -> None:
    """Answers jobs until there are no more."""
    sys.dont_write_bytecode = True
    # What is loaded by now is never garbage; to look through it in each child takes longest of all.
    gc.freeze()
    for line in sys.stdin:
        job = json.loads(line)
        with tempfile.TemporaryDirectory() as folder:
            for path, text in job["files"].items():
                file = Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            run = next(run for key, run in _RUNS.items() if key in job)
            print(forked(run, job, folder), flush=True)


def forked(run: Callable[[Job], dict[str, Any]], job: Job, folder: str) -> str:
    """What a function answers in a child that works in a folder, as JSON."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.chdir(folder)
            sys.path.insert(0, folder)
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            answer = run(job)
        except BaseException as error:  # whatever a project raises is the answer
            answer = {"error": f"{type(error).__name__}: {error}"}
        os.write(write, json.dumps(answer).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answered:
        text = answered.read().decode()
    os.waitpid(child, 0)
    return text or '{"error": "the child died"}'


def _watched(job: Job) -> dict[str, Any]:
    """What an import changed, and what it was seen to do."""
    modules = {name: importlib.import_module(name) for name in (OPERATORS, *job["modules"])}
    names = {name.partition(".")[0]: sys.modules[name.partition(".")[0]] for name in modules}
    events: list[str] = []
    watching = [True]

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if watching[0] and event in job["events"]:
            # Every import compiles its file; what is text was no file, and came from the project.
            by = sys._getframe(1).f_code.co_filename
            if event != "compile" or (arguments[1] == "<string>" and "/host/fast/" in by):
                events.append(event)

    time.sleep = lambda seconds: sys.audit("time.sleep", seconds)
    before = _states(job, names, modules)
    sys.addaudithook(hook)
    importlib.import_module(job["module"])
    if job["call"]:
        eval(job["call"], dict(names))
    watching[0] = False
    after = _states(job, names, modules)
    return {
        "states": sorted(s for s in before | after if before.get(s) != after.get(s)),
        "events": sorted(set(events)),
    }


def _states(job: Job, names: Mapping[str, Any], modules: Mapping[str, Any]) -> dict[str, str]:
    """The watched expressions, and what each name of each module stands for."""
    states = {state: repr(eval(state, dict(names))) for state in job["states"]}
    for module in modules.values():
        for name, value in vars(module).items():
            states[f"{module.__name__} has {name}"] = f"{type(value).__name__} {id(value)}"
    return states


class _Outcomes:
    """Counts how tests ended."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.counts[report.outcome] += 1
        elif report.outcome != "passed":
            self.counts["error" if report.failed else report.outcome] += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.counts["error"] += report.failed


def _tested(job: Job) -> dict[str, Any]:
    """How the project's tests ended."""
    outcomes = _Outcomes()
    pytest.main(["-q", "-p", "no:cacheprovider", *job["pytest"]], plugins=[outcomes])
    return {kind: count for kind, count in outcomes.counts.items() if count}


def _shown(job: Job) -> dict[str, Any]:
    """What an expression gives, or how it fails."""
    importlib.import_module(job["module"])
    try:
        return {"shown": repr(eval(job["shows"], {"host": sys.modules["host"]}))}
    except Exception as error:  # to fail is one way to come out
        return {"shown": type(error).__name__}


_RUNS = {"pytest": _tested, "states": _watched, "shows": _shown}

if __name__ == "__main__":
    assert numpy.testing
    assert torch
    main()
