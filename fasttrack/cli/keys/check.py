# SPDX-License-Identifier: Apache-2.0
"""`fasttrack keys check`."""

from datetime import date
from pathlib import Path

import click

from fasttrack.cli.options import as_of_option, repo_option
from fasttrack.errors import Exit
from fasttrack.report.output import write_output
from fasttrack.workspace import open_workspace


@click.command("check")
@repo_option
@as_of_option
def command(repo: Path, as_of: date) -> int:
    """Compare the policy's keys with the files `keys/ID.pub` of the configuration folder.

    Exits with 1 unless every key is in both and the same, the sigstore root is the one that the
    policy names, and every key and identity is able to sign on the day.
    """
    from fasttrack.evidence.keyfile import check_keys, read_public_files
    from fasttrack.report.keys import checked_text

    workspace = open_workspace(repo)
    files = read_public_files(workspace.root / workspace.config.folder / "keys")
    checked = check_keys(workspace.config.policy.trust, files, as_of)
    write_output(checked_text(checked), None)
    return Exit.REFUSED if any(key.faults for key in checked) else Exit.FAST_TRACK
