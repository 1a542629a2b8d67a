# SPDX-License-Identifier: Apache-2.0
"""The outermost door of a command line, where every error becomes words and an exit code.

A shell must be able to tell a fault of the program, or an output that nobody read, from an answer:
1 is an answer here, and also what the interpreter exits with when an error escapes.
"""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import click

from fasttrack import __version__
from fasttrack.errors import Exit, InputError

INTERRUPTED = 130
"""What a shell reports of a tool that an interrupt ended: 128 and the signal's number."""
CLOSED_PIPE = 141
"""The same of a tool that wrote to a pipe which nobody reads any more."""


def run(
    group: click.Group,
    program: str,
    arguments: Sequence[str],
    *,
    shown: Callable[[str], str] = str,
) -> int:
    """Runs one command and returns its exit code; every error ends here.

    Args:
        group: the commands.
        program: their name on the command line.
        arguments: the command line without that name.
        shown: makes what a problem quotes safe to print.
    """
    try:
        return _run(group, program, arguments, shown)
    except BrokenPipeError:
        _drop_unwritten()
        return CLOSED_PIPE
    except Exception:  # a fault of ours, with what is needed to report it
        _report_fault(program)
        return Exit.OUR_FAULT


def _run(
    group: click.Group, program: str, arguments: Sequence[str], shown: Callable[[str], str]
) -> int:
    result: Any
    try:
        # Not `group.main`, which turns a closed pipe into 1, an answer of these commands.
        with group.make_context(program, [*arguments]) as context:
            result = group.invoke(context)
    except click.exceptions.Exit as done:
        result = done.exit_code
    except click.ClickException as error:
        error.show()
        return Exit.BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        click.echo(err=True)  # ends the line on which a terminal shows ^C
        return INTERRUPTED
    except InputError as error:
        for problem in error.problems:
            click.echo(f"{program}: {shown(str(problem))}", err=True)
        return Exit.BAD_INPUT
    return result if isinstance(result, int) else 0


def _report_fault(program: str) -> None:
    import platform  # noqa: PLC0415  (needed by nobody whose command works)
    import traceback  # noqa: PLC0415

    report = (
        f"{traceback.format_exc()}\n"
        f"This is a fault of {program}, not of your change or input. Please report it with the "
        f"lines above.\n{program} {__version__}, Python {platform.python_version()}, "
        f"{platform.system()}"
    )
    with suppress(OSError):
        click.echo(report, err=True)
    _drop_unwritten()


def _drop_unwritten() -> None:
    """Lets go what can not be written: the interpreter would try again at its end, and complain."""
    for stream in filter(None, (sys.__stdout__, sys.__stderr__)):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
