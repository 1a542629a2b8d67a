# SPDX-License-Identifier: Apache-2.0
"""The `fasttrack` command: a table of commands."""

import gc
import os
import sys
from collections.abc import Mapping
from typing import NoReturn

import click

from fasttrack import __version__, door
from fasttrack.lazy_group import LazyGroup
from fasttrack.report.visible import visible

OBJECTS_BEFORE_COLLECTION = 100_000
"""New objects before the interpreter looks for garbage that refers to itself."""
COMMANDS: Mapping[str, str] = {
    "audit": "Prove the order of loads in kernels' machine code.",
    "check": "Judge a change against the target branch's policy.",
    "demo": "Show the four verdicts on a small embedded repository.",
    "evidence": "Plan, measure, sign and judge evidence.",
    "explain": "Tell what a rule refuses, why, and how to mend a change.",
    "init": "Propose policy, manifest, code owners and workflow for a repository.",
    "keys": "Make, show and check the keys that sign evidence.",
    "policy": "Test, show and backtest a policy.",
    "schema": "Print the JSON Schema of a file format.",
    "scope": "Ask what a manifest's scope admits and which evidence it owes.",
}
"""Command name to its one-line help. Each lives in `fasttrack/cli/<name>.py` as `command`."""


@click.group(
    cls=LazyGroup,
    package="fasttrack.cli",
    table=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="fasttrack")
def cli() -> None:
    """A fast track for narrow, evidenced changes.

    Exit codes of `check`: 0 fast-track, 1 refused, 2 bad input, 3 needs-evidence,
    4 ordinary-review, 70 a fault of fasttrack itself.
    """


def main() -> NoReturn:
    """Runs the command line and exits."""
    # Syntax trees and statements are many objects without cycles: looking for some takes a tenth of
    # the time, and finds nothing.
    gc.set_threshold(OBJECTS_BEFORE_COLLECTION)
    # Plugins of whatever else is installed could change what a model accepts, and take a search
    # through all packages to find.
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs one command and returns its exit code; every error ends here.

    Args:
        arguments: the command line without the program's name.
    """
    return door.run(cli, "fasttrack", arguments, shown=visible)
