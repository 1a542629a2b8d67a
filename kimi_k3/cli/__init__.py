# SPDX-License-Identifier: Apache-2.0
"""The `kimi-k3` command: a table of commands, each imported when it is called."""

import sys
from collections.abc import Mapping

import click

from fasttrack import __version__
from fasttrack.errors import Exit, FasttrackError, InputError
from fasttrack.lazy_group import LazyGroup

COMMANDS: Mapping[str, str] = {
    "config": "Show shapes, bytes and owners of a model's tensors.",
    "generate": "Continue a prompt of token ids.",
    "scope": "Ask the gate.",
}
"""Command name to its one-line help. Each lives in `kimi_k3/cli/<name>.py` as `command`."""


EXTRAS = {"numpy": "reference", "safetensors": "reference", "torch": "reference"} | {
    "fla": "gpu",
    "triton": "gpu",
}
"""Modules by the extra that brings them; shapes and the gate need none of them."""


@click.group(
    cls=LazyGroup,
    package="kimi_k3.cli",
    table=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="kimi-k3")
def cli() -> None:
    """The Kimi K3 decode path."""


def main() -> None:
    """Runs the command line; what is wrong with an input is said in one line a problem."""
    try:
        cli(prog_name="kimi-k3")
    except InputError as error:
        for problem in error.problems:
            click.echo(f"kimi-k3: {problem}", err=True)
        sys.exit(Exit.BAD_INPUT)
    except FasttrackError as error:
        click.echo(f"kimi-k3: {error}", err=True)
        sys.exit(Exit.OUR_FAULT)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRAS:
            raise
        extra = EXTRAS[missing]
        click.echo(
            f"kimi-k3: saw no {missing}; want what the extra `{extra}` brings; fix: install it, "
            f"such as pip install 'path/to/clone[{extra}]'",
            err=True,
        )
        sys.exit(Exit.BAD_INPUT)
