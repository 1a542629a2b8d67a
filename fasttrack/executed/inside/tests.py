# SPDX-License-Identifier: Apache-2.0
"""Collects tests, or runs them, with pytest; run by its path.

    python -I -S -B tests.py REPORT_FD < JOB

The report is JSON and ends the process, so that nothing that a test has left behind runs after it.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

ERRORS_LIMIT = 200
TEXT = 300
"""Characters of a message."""
_MARKS = ("skip", "skipif", "xfail")


class Recorder:
    """Hears what pytest collects and what comes of each test."""

    def __init__(self) -> None:
        self.collected: dict[str, list[str]] = {}
        self.outcomes: dict[str, str] = {}
        self.messages: dict[str, str] = {}
        self.errors: list[str] = []

    def pytest_collection_finish(self, session: Any) -> None:
        """Notes what is left when every plug-in has had its say."""
        for item in session.items:
            marks = sorted({mark.name for mark in item.iter_markers() if mark.name in _MARKS})
            self.collected[item.nodeid] = marks

    def pytest_collectreport(self, report: Any) -> None:
        """Notes files that can not be collected, and those that skip themselves."""
        if report.failed and len(self.errors) < ERRORS_LIMIT:
            self.errors.append(f"{report.nodeid}: {_last_line(str(report.longrepr))}"[:TEXT])

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Notes the outcome of a test: that of its call, or of what failed around it."""
        if report.failed or report.when == "call" or report.skipped:
            self.outcomes[report.nodeid] = report.outcome
        if report.failed:
            self.messages[report.nodeid] = _message(report)


def _message(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return (crash.message if crash else _last_line(str(report.longrepr))).split("\n")[0][:TEXT]


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if line.startswith("E ")), (lines or [""])[-1])


def main() -> None:
    """Reads the job, does it, and leaves without a goodbye."""
    report = int(sys.argv[1])
    job = json.load(sys.stdin)
    sys.path[:0] = job["folders"]
    sys.path += job["packages"]
    import pytest  # noqa: PLC0415  (found only now)

    recorder = Recorder()
    arguments = [*job["options"], "--", *job["tests"]]
    sys.argv = ["pytest", *arguments]
    code = int(pytest.main(arguments, plugins=[recorder]))
    found = {
        "nonce": job["nonce"],
        "collected": recorder.collected,
        "outcomes": recorder.outcomes,
        "messages": recorder.messages,
        "errors": recorder.errors,
        "exit_code": code,
    }
    sys.stdout.flush()
    with os.fdopen(report, "wb") as pipe:
        pipe.write(json.dumps(found).encode("ascii", "replace"))
    os._exit(0)


if __name__ == "__main__":
    sys.path[:] = [p for p in sys.path if Path(p) != Path(__file__).parent]
    main()
