# SPDX-License-Identifier: Apache-2.0
"""`fasttrack init`."""

import shlex
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import click

from fasttrack.adopt.layouts import LAYOUTS
from fasttrack.adopt.propose import WORKFLOW, Answers, codeowners_lines, propose, write
from fasttrack.cli.options import as_of_option, repo_option
from fasttrack.config import folder_name
from fasttrack.errors import InputError
from fasttrack.manifest.words import NOBODY
from fasttrack.report.output import write_output
from fasttrack.workspace import repository_top


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
    help="Directory or file that the decode path owns, from the repository's top; repeatable.",
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
    top = repository_top(repo)
    if top is None:
        raise InputError.one(str(repo), "no git repository", "a working tree", "git init")
    answers = Answers(
        layout=LAYOUTS[layout],
        roots=tuple(_root(top, root) for root in roots),
        folder=folder_name(config_dir, "--config-dir"),
        owner=owner.removeprefix("@"),
        backup=backup.removeprefix("@"),
        model=model,
        as_of=as_of,
    )
    owners = codeowners_lines(answers)
    written = write(top, propose(answers), owners)
    lines = ["wrote", *(f"  {path}" for path in written), ""]
    if ".github/CODEOWNERS" not in written:
        lines += ["add to your code owners file:", *(f"  {line}" for line in owners.splitlines())]
        lines += [""]
    missing = [root for root in answers.roots if not (top / root).exists()]
    lines += [f"note: {root} is not there yet" for root in missing]
    lines += ["next", *_steps(answers, written)]
    write_output("\n".join(lines) + "\n", None)


def _steps(answers: Answers, written: Sequence[str]) -> Iterator[str]:
    folder, first = answers.folder, answers.roots[0]
    gate = first + "gate.py" if first.endswith("/") else first
    yield f"  1. read {folder}/policy.yaml: what it allows is what the fast track allows"
    yield "  2. in the manifest beside it: name model, weights, tests and a summary, and in `gate`"
    yield f"     the file that decides admission ({gate} is proposed)"
    if {answers.owner, answers.backup} & set(NOBODY):
        yield f"  3. replace {' and '.join(NOBODY)} in manifest and code owners by people"
    else:
        yield "  3. see that owner, backup and sponsor are who answers for it"
    yield f"  4. in {WORKFLOW}: set where fasttrack-decode is installed from"
    yield f"  5. on a branch: git add {shlex.join(written)}; commit and propose it:"
    yield "     a first policy is always an ordinary review"
    yield "  6. see what it would have said: fasttrack policy backtest OLD..NEW"


def _root(repo: Path, root: str) -> str:
    """A root as the manifest spells it: `/`-separated, a directory with `/` at the end.

    Raises:
        InputError: it is not a path inside the repository.
    """
    path = root.replace("\\", "/").removeprefix("./")
    # `folder_name` would strip a leading slash, with which a path is none of the repository.
    name = folder_name(path if not path.startswith("/") else None, f"--root {root!r}")
    return name + "/" if path.endswith("/") or (repo / name).is_dir() else name
