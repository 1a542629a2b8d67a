# SPDX-License-Identifier: Apache-2.0
"""The `kimi-k3` command: a table of commands, each imported when it is called."""

import sys
from collections.abc import Mapping
from typing import Any, NoReturn

import click

from fasttrack import __version__, door
from fasttrack.errors import InputError
from fasttrack.lazy_group import LazyGroup

COMMANDS: Mapping[str, str] = {
    "config": "Show shapes, bytes and owners of a model's tensors.",
    "generate": "Continue a prompt of token ids.",
    "kernels": "Build, list, audit and tune the kernels of the decode path.",
    "scope": "Ask the gate.",
    "validate": "Judge kernels from outside, and the judge by candidates that are wrong.",
}
"""Command name to its one-line help. Each lives in `kimi_k3/cli/<name>.py` as `command`."""

EXTRAS = {"numpy": "reference", "safetensors": "reference", "torch": "reference"} | {
    "cuda": "kernels",
    "cutlass": "kernels",
    "fla": "gpu",
    "triton": "gpu",
}
"""Modules by the extra that brings them; shapes and the gate need none of them."""


class Commands(LazyGroup):
    """Commands of which some need what only an extra brings."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs one command.

        Raises:
            InputError: it needs a module of an extra that is not installed.
        """
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if missing not in EXTRAS:
                raise
            extra = EXTRAS[missing]
            raise InputError.one(
                missing,
                "no such module",
                f"what the extra `{extra}` brings",
                f"install it, such as pip install 'path/to/clone[{extra}]'",
            ) from error


@click.group(
    cls=Commands,
    package="kimi_k3.cli",
    table=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="kimi-k3")
def cli() -> None:
    """The Kimi K3 decode path.

    Exit codes: 0 done or admitted, 1 refused by the gate, 2 bad input, 70 a fault of kimi-k3
    itself.
    """


def main() -> NoReturn:
    """Runs the command line and exits."""
    sys.exit(door.run(cli, "kimi-k3", sys.argv[1:]))
