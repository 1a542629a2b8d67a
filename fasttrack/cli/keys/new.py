# SPDX-License-Identifier: Apache-2.0
"""`fasttrack keys new`."""

from datetime import date
from pathlib import Path

import click

from fasttrack.cli.options import as_of_option
from fasttrack.report.output import write_output


@click.command("new")
@click.option("--id", "key_id", required=True, metavar="ID", help="Its name in the policy.")
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="Where the private key goes; only you can read it.",
)
@click.option(
    "--public-out", type=click.Path(path_type=Path), help="Where the public key goes, as PEM."
)
@as_of_option
def command(key_id: str, out: Path, public_out: Path | None, as_of: date) -> None:
    """Make an ed25519 key and print the lines that make the policy trust it.

    No file is overwritten. The private key stays on the machine that signs; what the policy says
    of the key is the policy's to decide, and the lines are a proposal.
    """
    from fasttrack.evidence.keyfile import new_key
    from fasttrack.report.keys import policy_lines

    public = new_key(key_id, out, public_out)
    write_output(policy_lines(key_id, public, as_of), None)
