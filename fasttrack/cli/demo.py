# SPDX-License-Identifier: Apache-2.0
"""`fasttrack demo`."""

import tempfile
from dataclasses import replace
from datetime import date
from pathlib import Path

import click

from fasttrack.cli.options import as_of_option
from fasttrack.demo.example import base_files, examples
from fasttrack.errors import InputError
from fasttrack.report.output import write_output
from fasttrack.report.record import verdict_record
from fasttrack.report.style import terminal_style
from fasttrack.report.text import text_report
from fasttrack.testing import Repo
from fasttrack.verdict import Request, evaluate


@click.command("demo")
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="Build the repository in DIR and leave it there, to try `fasttrack check` on.",
)
@as_of_option
def command(keep: Path | None, as_of: date) -> None:
    """Show the four verdicts on a small embedded repository.

    Nothing outside a temporary directory is written, and no network is used.
    """
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise InputError.one(str(keep), "a directory that is not empty", "a new directory")
    with tempfile.TemporaryDirectory(prefix="fasttrack-demo-") as temporary:
        where = keep or Path(temporary)
        _build(where, as_of)
        for example in examples(as_of):
            verdict = evaluate(Request(where, target="main", head=example.branch), as_of)
            if verdict.outcome is not example.outcome:
                raise RuntimeError(f"{example.branch} came out {verdict.outcome}")
            style = terminal_style()
            title = style.paint(f"== {example.branch}", "cyan")
            # Commands as in the repository itself: it may be gone before anybody tries them.
            report = text_report(verdict_record(replace(verdict, request=None)), style)
            write_output(f"{title}\n{example.says}\n\n{report}\n{example.lesson}\n\n", None)
    if keep is not None:
        write_output(
            f"The repository is in {keep}. Try:\n"
            f"  fasttrack check --repo {keep} --head faster-attention --format json\n",
            None,
        )


def _build(where: Path, as_of: date) -> None:
    repo = Repo(where)
    tip = repo.commit("main", base_files(as_of), message="The engine and its policy\n")
    for example in examples(as_of):
        repo.commit(example.branch, example.files, parent=tip, message=example.says + "\n")
