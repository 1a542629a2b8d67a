# SPDX-License-Identifier: Apache-2.0
"""Whether a directory is the tree that a plan was made of, told without git."""

import shlex
from pathlib import Path

from fasttrack.errors import Problem
from fasttrack.evidence.on_disk import conftests, difference
from fasttrack.evidence.plan import Plan, all_files


def compare(plan: Plan, root: Path) -> list[Problem]:
    """Which listed files are not on disk as the plan has them; empty when all are.

    A `conftest.py` above a test takes part in it unasked, so that one which is not listed must not
    be there. Nothing is told about other files that are not listed: what was loaded or opened
    beside them is for the collector to see.

    Args:
        plan: lists the files.
        root: the directory that its paths are relative to.
    """
    wanted: dict[str, tuple[str | None, str]] = {}
    for unit in plan.units:
        wanted |= {file.path: (None, file.sha256) for file in unit.boundary}
    for file in all_files(plan):
        wanted[file.path] = (file.mode, file.sha256)
    found = ((path, difference(root, path, *wanted[path])) for path in sorted(wanted))
    at = plan.commit[:12]
    problems = [Problem(p, saw, f"the file of commit {at}", _fix(p, at)) for p, saw in found if saw]
    for path in conftests(root, {path for cell in plan.cells for path in cell.tests}):
        if path not in wanted:
            want = f"none, as in commit {at}: it takes part in the tests below it"
            problems.append(Problem(path, "a file that the plan does not have", want))
    return problems


def _fix(path: str, commit: str) -> str:
    """How a file gets there; a checkout of the commit alone leaves what was edited."""
    command = f"git checkout {commit} -- {shlex.quote(path)}"
    return f"{command}, without filters that change line ends"
