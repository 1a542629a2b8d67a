# SPDX-License-Identifier: Apache-2.0
"""A group of commands that imports a command when it is called; `--help` needs none of them."""

import importlib
import keyword
from collections.abc import Mapping
from typing import Any

import click


class LazyGroup(click.Group):
    """Commands as a table of names and one-line helps.

    Each command lives in `<package>.<name>` as `command`; in `<name>_` where the name is a word of
    Python's, such as `import`.
    """

    def __init__(self, *args: Any, package: str, table: Mapping[str, str], **options: Any) -> None:
        """Takes the package that holds the commands, and the table beside click's arguments."""
        super().__init__(*args, **options)
        self._package = package
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in alphabetical order."""
        return sorted(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports one command."""
        if cmd_name not in self._table:
            return None
        module = f"{self._package}.{cmd_name}{'_' if keyword.iskeyword(cmd_name) else ''}"
        command = importlib.import_module(module).command
        if not isinstance(command, click.Command):
            raise TypeError(f"{module}.command is not a command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands from the table, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(self._table.items()))
