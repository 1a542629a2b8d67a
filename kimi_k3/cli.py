# SPDX-License-Identifier: Apache-2.0
"""The `kimi-k3` command."""

import sys

import click

from fasttrack import __version__
from fasttrack.errors import Exit, InputError
from fasttrack.manifest.admission import Question
from kimi_k3.decode.scope import packaged_manifest, refusals


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kimi-k3")
def cli() -> None:
    """The Kimi K3 decode path. So far: its scope."""


@cli.group()
def scope() -> None:
    """Ask the gate."""


@scope.command()
@click.option("--gpu", metavar="ID", required=True, help="Hardware id, such as gb300.")
@click.option("--tp", type=click.IntRange(1), required=True, help="Tensor parallelism.")
@click.option("--dcp", type=click.IntRange(1), default=1, help="Decode context parallelism.")
@click.option("--requests", type=click.IntRange(1), required=True, help="Requests of one step.")
@click.option("--draft", type=click.IntRange(0), default=0, help="Draft tokens per request.")
@click.option("--context", type=click.IntRange(1), default=1, help="Longest context in tokens.")
def explain(gpu: str, tp: int, dcp: int, requests: int, draft: int, context: int) -> None:
    """Tell whether the gate admits a configuration, or every reason why not (exit code 1)."""
    reasons = refusals(packaged_manifest(), Question(gpu, tp, dcp, requests, draft, context))
    if not reasons:
        click.echo("admitted")
        return
    click.echo("not admitted; decode_backend: auto takes such steps")
    for reason in reasons:
        click.echo(f"  - {reason}")
    sys.exit(1)


def main() -> None:
    """Runs the command line; what is wrong with an input is said in one line a problem."""
    try:
        cli(prog_name="kimi-k3")
    except InputError as error:
        for problem in error.problems:
            click.echo(f"kimi-k3: {problem}", err=True)
        sys.exit(Exit.BAD_INPUT)
