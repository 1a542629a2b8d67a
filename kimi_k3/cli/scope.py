# SPDX-License-Identifier: Apache-2.0
"""`kimi-k3 scope`: what the gate admits."""

import sys

import click

from fasttrack.manifest.admission import Question
from kimi_k3.decode.scope import packaged_manifest, refusals


@click.group()
def command() -> None:
    """Ask the gate."""


@command.command()
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
