# SPDX-License-Identifier: Apache-2.0
"""`fasttrack keys show`."""

from pathlib import Path

import click

from fasttrack.report.output import write_output


@click.command("show")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def command(file: Path) -> None:
    """Print the public half of the key in FILE, as the policy wants it.

    FILE is a private or public key as PEM, or a private seed of 64 hexadecimal digits.
    """
    from fasttrack.evidence.keyfile import read_public

    write_output(read_public(file) + "\n", None)
