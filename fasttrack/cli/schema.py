# SPDX-License-Identifier: Apache-2.0
"""`fasttrack schema`."""

import click

from fasttrack.report.output import write_output
from fasttrack.report.schemas import SCHEMAS, schema_text


@click.command("schema")
@click.argument("what", type=click.Choice(sorted(SCHEMAS)))
def command(what: str) -> None:
    """Print the JSON Schema of WHAT, for editors and for programs that read our output."""
    write_output(schema_text(what), None)
