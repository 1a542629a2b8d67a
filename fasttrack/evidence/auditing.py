# SPDX-License-Identifier: Apache-2.0
"""Shows a `sync-audit` cell: finds the variant's machine code, audits it, and tells the result.

The row of the variant table names the machine code and its contracts. A file is read and nothing of
the path is run; a module makes it in a child, as tests run, and only the bytes that come out of
that are looked at here. So the measured code can not judge itself, whatever it is.
"""

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from pathlib import Path

from fasttrack.audit.approvals import Approvals
from fasttrack.audit.contract import Contract
from fasttrack.audit.finding import Verdict
from fasttrack.audit.lint import load_contract, speaks_of
from fasttrack.audit.read.cubin import read_cubin
from fasttrack.audit.run import UNREAD, Named, Outcome, Source, audit_files
from fasttrack.errors import FactUnavailable, InputError
from fasttrack.evidence import child
from fasttrack.evidence.child_report import Build, Built, ChildReport
from fasttrack.evidence.observed import python
from fasttrack.evidence.on_disk import open_regular
from fasttrack.evidence.plan import Plan, PlannedCell, PlannedUnit
from fasttrack.evidence.predicates import sync_audit_v1
from fasttrack.evidence.predicates.common import Inputs, Machine, RunFacts, Toolchain
from fasttrack.evidence.predicates.sync_audit_v1 import AuditedKernel, AuditWaiver, SyncAuditV1
from fasttrack.evidence.shown import facts_of, toolchain_of
from fasttrack.evidence.statement import Statement
from fasttrack.evidence.used import used_files
from fasttrack.manifest.load import load_manifest
from fasttrack.manifest.model import AUDIT_WAIVER, Waiver
from fasttrack.manifest.variants import Variant, load_variant_table

MAX_CODE = 64 << 20
"""Bytes of a file that is read."""
MAX_UNDECLARED = 4096
"""Undeclared files that a statement names."""
WORD = 200
"""Letters of a tool's name and version."""


@dataclass(frozen=True)
class Run:
    """Where and how cells are audited.

    Attributes:
        plan: the plan.
        root: the source tree.
        machine: this machine.
        facts: plan, run and times up to now.
        made: runs a module of a unit in a child.
    """

    plan: Plan
    root: Path
    machine: Machine
    facts: Callable[[], RunFacts]
    made: Callable[[PlannedCell, Build], child.Outcome]


@dataclass(frozen=True)
class _Code:
    """Machine code of one variant.

    Attributes:
        name: how messages name it.
        data: its bytes.
        contracts: contracts of its kernels.
        read: repository files that were read for it.
        report: of the child that made it; None where it is a file.
    """

    name: str
    data: bytes
    contracts: tuple[Named, ...]
    read: tuple[str, ...]
    report: ChildReport | None = None


def audit(run: Run, cell: PlannedCell) -> tuple[Statement, str]:
    """The statement of a cell, and the findings in words.

    Raises:
        FactUnavailable: there is nothing to audit, with the reason.
        InputError: a table, contract or manifest is wrong, or the audit's tools are not installed.
    """
    unit = run.plan.unit(cell.unit)
    table = unit.variants
    if table is None:
        raise FactUnavailable(f"the unit {unit.unit} has no variant table that names machine code")
    variant = _row(run.root, table, cell)
    code = _code(run, cell, variant, table)
    outcomes = audit_files(
        [Source(code.name, code.data)], code.contracts, Approvals(approvals=1), date.min
    )
    _require_arch(outcomes, code.name, variant.arch)
    facts = run.facts()
    waivers = _waivers(run, facts.started.date(), outcomes)
    told = outcomes[0].toolchain if outcomes else None
    predicate = SyncAuditV1(
        cell=facts_of(cell),
        run=facts,
        machine=run.machine,
        toolchain=_toolchain(run, code),
        inputs=_inputs(run, unit, code),
        cubin=outcomes[0].audited.cubin if outcomes else sha256(code.data).hexdigest(),
        kernels=tuple(_kernels(outcomes, code, waivers)),
        disassembler=(told.disassembler if told else "")[:WORD] or "none",
        assembler=(told.assembler if told else "")[:WORD] or None,
    )
    return Statement(sync_audit_v1.TYPE, predicate), "\n".join(_findings(outcomes))


def _row(root: Path, table: str, cell: PlannedCell) -> Variant:
    """The variant's row, which names its machine code."""
    wanted = cell.values["variant"], cell.values["arch"]
    rows = load_variant_table(_content(root, table), table).variants
    row = next((one for one in rows if (one.id, one.arch) == wanted), None)
    if row is None or row.audit is None:
        lacks = "has no such variant" if row is None else f"names no `audit` of {row.id}"
        raise FactUnavailable(f"{table} {lacks}")
    return row


def _code(run: Run, cell: PlannedCell, variant: Variant, table: str) -> _Code:
    assert variant.audit is not None
    path, files = variant.audit.code, variant.audit.contracts
    own = [Named(file, load_contract(_content(run.root, file), file)) for file in files]
    if not path.endswith(".py"):
        data = _content(run.root, path)
        return _Code(path, data, tuple(own), (table, path, *files))
    row = variant.model_dump(mode="json", exclude={"audit"})
    outcome = run.made(cell, Build(module=path, variant=row))
    if outcome.report is None or outcome.report.built is None:
        raise FactUnavailable(f"{path} made no machine code: {outcome.why}\n{outcome.log}".strip())
    data, held = _unpacked(outcome.report.built, path)
    own += _speaking(held, data, path)
    return _Code(f"{path}: {variant.id}", data, tuple(own), (table, *files), outcome.report)


def _unpacked(built: Built, path: str) -> tuple[bytes, list[Contract]]:
    try:
        data = base64.b64decode(built.code, validate=True)
    except binascii.Error as error:
        raise FactUnavailable(f"{path} made no machine code: {error}") from error
    source = f"{path}: CONTRACTS"
    return data, [load_contract(one, f"{source}[{i}]") for i, one in enumerate(built.contracts)]


def _speaking(held: Sequence[Contract], data: bytes, path: str) -> Iterator[Named]:
    """A module's contracts of these kernels; others are of its other variants."""
    try:
        kernels = read_cubin(data) if held else ()
    except FactUnavailable:  # the audit says so
        return
    for one in held:
        if any(speaks_of(one, kernel) for kernel in kernels):
            yield Named(f"{path}: {one.kernel}", one)


def _toolchain(run: Run, code: _Code) -> Toolchain:
    """Where a file was audited, no package of the path had a part in it."""
    report = code.report
    return Toolchain(python=python()) if report is None else toolchain_of(report, run.plan.packages)


def _require_arch(outcomes: Sequence[Outcome], name: str, arch: str) -> None:
    found = {one.audited.arch for one in outcomes} - {UNREAD, arch}
    if found:
        raise FactUnavailable(f"{name} is for {min(found)}, and its variant for {arch}")


def _inputs(run: Run, unit: PlannedUnit, code: _Code) -> Inputs:
    declared = {file.path for file in (*unit.files, *unit.tests)}
    boundary, undeclared = unit.boundary, {*code.read} - declared
    if code.report is not None:
        boundary, more = used_files(run.plan, unit, code.report, run.root)
        undeclared |= {*more}
    return Inputs(
        unit=unit.unit,
        digest=unit.digest,
        tests=unit.tests_digest,
        boundary=boundary,
        undeclared=tuple(sorted(undeclared))[:MAX_UNDECLARED],
    )


def _waivers(run: Run, day: date, outcomes: Iterable[Outcome]) -> Mapping[str, Waiver]:
    """Skeleton to the manifest's waiver of it; the manifest is read only where one may help."""
    if all(one.audited.verdict is not Verdict.UNPROVEN for one in outcomes):
        return {}
    path = run.plan.manifest.path
    text = _content(run.root, path)
    if sha256(text).hexdigest() != run.plan.manifest.sha256:
        raise FactUnavailable(f"{path} is not the manifest that the plan was made with")
    waivers = load_manifest(text, path).waivers
    return {w.fingerprint: w for w in waivers if w.rule == AUDIT_WAIVER and w.expires >= day}


def _kernels(
    outcomes: Sequence[Outcome], code: _Code, waivers: Mapping[str, Waiver]
) -> Iterator[AuditedKernel]:
    """Every kernel; one without a name where nothing could be read."""
    whole = sha256(code.data).hexdigest()
    if not outcomes:
        yield AuditedKernel(name=UNREAD, verdict="unproven", skeleton=whole)
    for one in outcomes:
        audited = one.audited
        skeleton = audited.skeleton or whole
        unproven = audited.verdict is Verdict.UNPROVEN
        waiver = waivers.get(skeleton) if unproven else None
        yield AuditedKernel(
            name=audited.kernel[:4096],
            verdict=audited.verdict.value,
            skeleton=skeleton,
            waiver=None if waiver is None else _listed(waiver),
        )


def _listed(waiver: Waiver) -> AuditWaiver:
    return AuditWaiver(
        skeleton=waiver.fingerprint,
        reason=waiver.reason,
        owner=waiver.owner,
        expires=waiver.expires,
    )


def _findings(outcomes: Iterable[Outcome]) -> Iterator[str]:
    for one in outcomes:
        audited = one.audited
        if audited.verdict is Verdict.UNPROVEN and audited.skeleton:
            yield f"{audited.kernel}: skeleton {audited.skeleton}"
        for finding in audited.findings:
            at = "" if finding.address is None else f" at 0x{finding.address:04x}"
            yield f"{audited.kernel}{at}: {finding.rule} {finding.verdict}: {finding.saw}"


def _content(root: Path, path: str) -> bytes:
    """The bytes of a file of the tree."""
    try:
        with open_regular(root / path) as file:
            data = file.read(MAX_CODE + 1)
    except OSError as error:
        raise InputError.one(path, error.strerror or "unreadable", "a file of the tree") from error
    if len(data) > MAX_CODE:
        raise InputError.one(path, f"more than {MAX_CODE:,} bytes", "a smaller file")
    return data
