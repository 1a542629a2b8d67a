# SPDX-License-Identifier: Apache-2.0
"""`fasttrack audit`."""

import re
from datetime import date
from pathlib import Path

import click

from fasttrack.cli.options import as_of_option, format_option
from fasttrack.errors import Exit, InputError

_file = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command("audit")
@click.argument("files", nargs=-1, required=True, type=_file, metavar="FILE...")
@click.option(
    "--contract",
    "contracts",
    multiple=True,
    type=_file,
    help="Contract of a kernel; once for each.",
)
@click.option(
    "--arch",
    "archs",
    multiple=True,
    metavar="ARCH",
    help="What a module is compiled for; once for each [sm_90a, sm_100a, sm_103a].",
)
@click.option("--kernel", "only", default="*", metavar="GLOB", help="Only these kernels.")
@click.option("--approvals", type=_file, help="Skeletons and waivers that people approved.")
@click.option("--launches", type=_file, help="A recorded sequence of launches, to be checked, too.")
@as_of_option
@format_option
def command(
    files: tuple[Path, ...],
    contracts: tuple[Path, ...],
    archs: tuple[str, ...],
    only: str,
    approvals: Path | None,
    launches: Path | None,
    as_of: date,
    output_format: str,
) -> int:
    """Prove, from machine code, that kernels read memory only when they may.

    FILE is a cubin, PTX, or a module of the CuTe DSL (.py), which is run to compile its kernels.
    Without a contract a kernel is unproven, and its waits, triggers and fences are listed. Exit
    codes: 0 all proved or waived, 1 one is violated or two launches race, 2 bad input, 4 one is
    unproven.
    """
    from fasttrack import strict_yaml
    from fasttrack.audit.approvals import Approvals, load_approvals
    from fasttrack.audit.finding import Verdict
    from fasttrack.audit.launches import Recorded
    from fasttrack.audit.lint import load_contract
    from fasttrack.audit.read.module import ARCHITECTURES
    from fasttrack.audit.run import Named, audit_files, gathered, hazards_of
    from fasttrack.report.audit import Report, audit_json, audit_text
    from fasttrack.report.output import write_output
    from fasttrack.report.style import terminal_style

    _require_used(archs, files)
    said = Approvals(approvals=1) if approvals is None else load_approvals(*_text(approvals))
    named = [Named(str(path), load_contract(*_text(path))) for path in contracts]
    recorded = None
    if launches is not None:
        recorded = strict_yaml.validate(strict_yaml.parse(*_text(launches)), Recorded)
    sources, own = gathered(files, archs or ARCHITECTURES)
    outcomes = audit_files(sources, [*own, *named], said, as_of, only)
    if not outcomes:
        raise InputError.one("FILE", f"no kernel that is called {only!r}", "a kernel to audit")
    found = hazards_of(outcomes, recorded, str(launches))
    audited = Report(outcomes, found, recorded is not None)
    if output_format == "json":
        write_output(audit_json(audited), None)
    else:
        write_output(audit_text(audited, terminal_style()), None)
    if found or any(one.audited.verdict is Verdict.VIOLATED for one in outcomes):
        return Exit.REFUSED
    return Exit.FAST_TRACK if all(one.passes for one in outcomes) else Exit.ORDINARY_REVIEW


def _require_used(archs: tuple[str, ...], files: tuple[Path, ...]) -> None:
    strange = [one for one in archs if not re.fullmatch(r"sm_\d{2,3}[af]?", one)]
    if strange:
        raise InputError.one("--arch", strange[0], "an architecture such as sm_103a")
    if archs and not any(path.suffix == ".py" for path in files):
        raise InputError.one(
            "--arch", archs[0], "a module of the CuTe DSL (.py); a cubin or PTX is for one"
        )


def _text(path: Path) -> tuple[bytes, str]:
    return path.read_bytes(), str(path)
