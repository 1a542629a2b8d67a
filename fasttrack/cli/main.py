# SPDX-License-Identifier: Apache-2.0
"""The `fasttrack` command: a table of commands and the one door where errors become exit codes."""

import sys
from collections.abc import Mapping
from typing import Any, NoReturn

import click

from fasttrack import __version__
from fasttrack.errors import Exit, InputError
from fasttrack.lazy_group import LazyGroup
from fasttrack.report.visible import visible

COMMANDS: Mapping[str, str] = {
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
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs one command and returns its exit code; every error ends here.

    Args:
        arguments: the command line without the program's name.
    """
    try:
        result: Any = cli.main(args=arguments, prog_name="fasttrack", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return Exit.BAD_INPUT
    except click.Abort:
        return 130
    except InputError as error:
        for problem in error.problems:
            click.echo(f"fasttrack: {visible(str(problem))}", err=True)
        return Exit.BAD_INPUT
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    except Exception:  # the outermost door: a fault of ours, with what is needed to report it
        click.echo(_fault_report(), err=True)
        return Exit.OUR_FAULT
    return result if isinstance(result, int) else 0


def _fault_report() -> str:
    import platform
    import traceback

    return (
        f"{traceback.format_exc()}\n"
        "This is a fault of fasttrack, not of your change. Please report it with the lines above.\n"
        f"fasttrack {__version__}, Python {platform.python_version()}, {platform.system()}"
    )
