# SPDX-License-Identifier: Apache-2.0
"""`fasttrack keys new`."""

from datetime import date
from pathlib import Path

import click

from fasttrack.cli.options import as_of_option
from fasttrack.report.output import write_output
from fasttrack.vocabulary import Kind


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
@click.option(
    "--hardware",
    required=True,
    multiple=True,
    metavar="ID",
    help="Hardware of the policy that it may sign for; repeatable.",
)
@click.option("--pool", metavar="ID", help="Machines that count as one witness [the key's id].")
@click.option(
    "--kinds",
    multiple=True,
    type=click.Choice([kind.value for kind in Kind]),
    help="Only this kind of evidence; repeatable.",
)
@click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice(["runner", "reviewer", "release"]),
    default=["runner"],
    show_default=True,
    help="What its holder does; repeatable.",
)
@as_of_option
def command(
    key_id: str,
    out: Path,
    public_out: Path | None,
    hardware: tuple[str, ...],
    pool: str | None,
    kinds: tuple[str, ...],
    roles: tuple[str, ...],
    as_of: date,
) -> None:
    """Make an ed25519 key and print the lines that make the policy trust it for a year.

    No file is overwritten. The private key stays on the machine that signs. The lines go into the
    policy as they are; under a `trust:` that is there already, without the first two.
    """
    from fasttrack.evidence.keyfile import new_key, proposed_key
    from fasttrack.report.keys import policy_lines

    asked = tuple(map(Kind, kinds)) or tuple(Kind)
    proposed = proposed_key(
        key_id, roles=roles, kinds=asked, pool=pool or key_id, hardware=hardware, day=as_of
    )
    public = new_key(key_id, out, public_out)
    write_output(policy_lines(proposed.model_copy(update={"public": public})), None)
