# SPDX-License-Identifier: Apache-2.0
"""`fasttrack init`."""

import shlex
from datetime import date
from pathlib import Path

import click

from fasttrack.adopt.layouts import LAYOUTS
from fasttrack.adopt.propose import Answers, codeowners_lines, propose, write
from fasttrack.cli.options import as_of_option, repo_option
from fasttrack.config import folder_name
from fasttrack.report.output import write_output

NOBODY = ("change-me", "change-me-too")
"""Owner and backup of a proposal whose author gave none; FT312 reports them until people are
named."""


@click.command("init")
@repo_option
@click.option(
    "--layout",
    type=click.Choice(sorted(LAYOUTS)),
    default="generic",
    show_default=True,
    help="Kind of repository.",
)
@click.option(
    "--root",
    "roots",
    metavar="PATH",
    multiple=True,
    required=True,
    help="Directory (or single file) that the decode path owns; may be repeated.",
)
@click.option("--owner", metavar="NAME", default=NOBODY[0], help="Who keeps the path working.")
@click.option(
    "--backup", metavar="NAME", default=NOBODY[1], help="Who does when the owner can not."
)
@click.option(
    "--model", metavar="ORG/NAME", default="example/model", help="Model that the path decodes."
)
@click.option(
    "--config-dir",
    metavar="DIR",
    default=".github/fasttrack",
    show_default=True,
    help="Folder of policy and manifests.",
)
@as_of_option
def command(
    repo: Path,
    layout: str,
    roots: tuple[str, ...],
    owner: str,
    backup: str,
    model: str,
    config_dir: str,
    as_of: date,
) -> None:
    """Propose policy, manifest, code owners and workflow for a repository.

    Writes new files only; nothing that exists is touched.
    """
    answers = Answers(
        layout=LAYOUTS[layout],
        roots=tuple(_root(repo, root) for root in roots),
        folder=folder_name(config_dir, "--config-dir"),
        owner=owner.removeprefix("@"),
        backup=backup.removeprefix("@"),
        model=model,
        as_of=as_of,
    )
    owners = codeowners_lines(answers)
    written = write(repo, propose(answers), owners)
    lines = ["wrote", *(f"  {path}" for path in written), ""]
    if ".github/CODEOWNERS" not in written:
        lines += ["add to your code owners file:", *(f"  {line}" for line in owners.splitlines())]
        lines += [""]
    lines += [
        "next",
        f"  1. read {answers.folder}/policy.yaml: what it allows is what the fast track allows",
        f"  2. git add {shlex.join(written)}",
        "  3. git commit, on the target branch: a first policy is always an ordinary review",
        f"  4. fasttrack policy backtest HEAD~50..HEAD --config {answers.folder}",
        "  5. on a branch with a change: fasttrack check",
    ]
    write_output("\n".join(lines) + "\n", None)


def _root(repo: Path, root: str) -> str:
    """A root as the manifest spells it: `/`-separated, a directory with `/` at the end.

    Raises:
        InputError: it is not a path inside the repository.
    """
    path = root.replace("\\", "/").removeprefix("./")
    # `folder_name` would strip a leading slash, with which a path is none of the repository.
    name = folder_name(path if not path.startswith("/") else None, f"--root {root!r}")
    return name + "/" if path.endswith("/") or (repo / name).is_dir() else name
