# SPDX-License-Identifier: Apache-2.0
"""`fasttrack evidence`: a table of its commands, one module each."""

from collections.abc import Mapping

import click

from fasttrack.lazy_group import LazyGroup

COMMANDS: Mapping[str, str] = {
    "collect": "Measure the cells of a plan on this machine, unsigned.",
    "gc": "List or remove evidence files that count for nothing any more.",
    "import": "Turn another tool's results into unsigned statements.",
    "inputs": "List what a unit's evidence depends on, and why.",
    "list": "List the evidence that the repository holds, and what counts.",
    "merge": "Add to a store what other folders of evidence hold.",
    "plan": "Write down which cells to measure, with digests and seeds.",
    "sign": "Compare a bundle with its plan and with git, and sign it.",
    "verify": "Tell whose signatures on evidence files count, and why others do not.",
}
"""Command name to its one-line help. Each lives in `fasttrack/cli/evidence/<name>.py`."""


@click.group("evidence", cls=LazyGroup, package="fasttrack.cli.evidence", table=COMMANDS)
def command() -> None:
    """Plan, measure, sign and judge evidence."""
