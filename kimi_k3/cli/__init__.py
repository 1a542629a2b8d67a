# SPDX-License-Identifier: Apache-2.0
"""The `kimi-k3` command: a table of commands, each imported when it is called."""

import importlib
import sys
from collections.abc import Mapping

import click

from fasttrack import __version__
from fasttrack.errors import Exit, FasttrackError, InputError

COMMANDS: Mapping[str, str] = {
    "config": "Show shapes, bytes and owners of a model's tensors.",
    "generate": "Continue a prompt of token ids.",
    "scope": "Ask the gate.",
}
"""Command name to its one-line help. Each lives in `kimi_k3/cli/<name>.py` as `command`."""


NUMERICS = ("numpy", "safetensors", "torch")
"""Modules of the extra `reference`; shapes and the gate need none of them."""


class LazyGroup(click.Group):
    """A group that imports a command when it is called; `--help` needs none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in alphabetical order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports one command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"kimi_k3.cli.{cmd_name}")
        command = module.command
        if not isinstance(command, click.Command):
            raise TypeError(f"kimi_k3.cli.{cmd_name}.command is not a command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands from the table, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
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
        if error.name not in NUMERICS:
            raise
        click.echo(
            f"kimi-k3: saw no {error.name}; want numpy, safetensors and torch; fix: install "
            "the extra `reference`, such as pip install 'path/to/clone[reference]'",
            err=True,
        )
        sys.exit(Exit.BAD_INPUT)
