# SPDX-License-Identifier: Apache-2.0
"""`fasttrack evidence merge`."""

from pathlib import Path

import click

from fasttrack.cli.options import config_dir_option, repo_option
from fasttrack.errors import Exit, InputError
from fasttrack.report.output import write_output
from fasttrack.report.visible import visible
from fasttrack.workspace import open_workspace


@click.command("merge")
@click.argument(
    "others",
    nargs=-1,
    metavar="[DIR|FILE]...",
    type=click.Path(path_type=Path, exists=True),
)
@repo_option
@config_dir_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Store to add to [evidence/ in the configuration folder of the working tree].",
)
@click.option(
    "--pack",
    is_flag=True,
    help="Write again, compressed, what only plain files of the store hold.",
)
def command(
    others: tuple[Path, ...], repo: Path, config_dir: str | None, out: Path | None, pack: bool
) -> int:
    """Add to a store what other folders of evidence files hold and it does not.

    FILE is one evidence file, or a sigstore bundle whose name ends with `.sigstore.json`. Whose
    signatures count is not asked. What is written is compressed, and nothing is removed: `evidence
    gc` lists the files of which each statement is in another one. Exits with 1 when a file or a
    line was left out.
    """
    from fasttrack.evidence.store import FOLDER, merge

    if not (others or pack):
        raise InputError.one("merge", "nothing to add", "DIR or FILE, or --pack")
    if out is None:
        workspace = open_workspace(repo, config_dir)
        out = workspace.root / workspace.config.folder / FOLDER
    files, problems = merge(out, others, pack_plain=pack)
    for problem in problems:
        click.echo(f"left out: {visible(str(problem))}", err=True)
    names = "".join(f"{file.name}\n" for file in files)
    write_output(names or "nothing that is not there already\n", None)
    return Exit.REFUSED if problems else Exit.FAST_TRACK
