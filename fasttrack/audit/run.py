# SPDX-License-Identifier: Apache-2.0
"""An audit of files: each kernel in them under its contract, and what people approved."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from fasttrack.audit.approvals import Approvals, Waiver
from fasttrack.audit.contract import Contract
from fasttrack.audit.finding import Audited, Finding, Verdict
from fasttrack.audit.fit import matches
from fasttrack.audit.judge import audit
from fasttrack.audit.launches import Hazard, Recorded, check_sequence, edges_of, hazards
from fasttrack.audit.lint import check_against, speaks_of
from fasttrack.audit.neighbours import neighbour_hazards
from fasttrack.audit.program import Kernel, Toolchain
from fasttrack.audit.read.cubin import ELF, is_cubin, read_cubin
from fasttrack.audit.read.module import contracts_of, cubins_of, load_module
from fasttrack.audit.read.ptx import cubin_of, looks_like_ptx
from fasttrack.errors import FactUnavailable, InputError, Problem

FAT = b"\x50\xed\x55\xba"
"""How a fat binary begins, which holds several cubins."""
UNREAD = "?"
"""Name and architecture in the result for a file that could not be read."""


@dataclass(frozen=True, slots=True)
class Source:
    """What is audited: a cubin or PTX, or a module's kernels compiled for one architecture.

    Attributes:
        name: how messages name it.
        data: its bytes.
        unread: why there are none, or empty.
    """

    name: str
    data: bytes
    unread: str = ""


@dataclass(frozen=True, slots=True)
class Named:
    """A contract, and how messages name its file."""

    source: str
    contract: Contract


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for one kernel.

    Attributes:
        file: where the kernel was.
        audited: what the audit says.
        waiver: what lets it pass although it is unproven, or None.
        toolchain: who made and who read the machine code.
        named: its contract, or None.
        no_waiver: why a waiver of this kernel does not hold, or empty.
    """

    file: str
    audited: Audited
    waiver: Waiver | None
    toolchain: Toolchain
    named: Named | None = None
    no_waiver: str = ""

    @property
    def passes(self) -> bool:
        """Whether it is proved, or unproven with a waiver."""
        return self.audited.verdict is Verdict.PROVED or self.waiver is not None

    @property
    def waits(self) -> bool:
        """Whether it is known that all its blocks wait before they end."""
        one = self.audited
        unknown = any(finding.rule in ("READ", "NO-WAIT") for finding in one.findings)
        early = self.named is not None and self.named.contract.pdl
        return early and bool(one.waits) and not unknown


def gathered(paths: Sequence[Path], archs: Sequence[str]) -> tuple[list[Source], list[Named]]:
    """What some files hold to be audited, and the contracts that come with them.

    Args:
        paths: cubins, PTX, and modules of the CuTe DSL (`.py`), which are run.
        archs: what modules are compiled for.

    Raises:
        InputError: a file is nothing of that, a module can not be run, or its contracts are wrong.
    """
    sources: list[Source] = []
    contracts: list[Named] = []
    read = {path: path.read_bytes() for path in paths if path.suffix != ".py"}
    strange = [Problem(str(path), *why) for path, data in read.items() if (why := _strange(data))]
    if strange:
        raise InputError(strange)
    for path in paths:
        if path in read:
            sources.append(Source(str(path), read[path]))
            continue
        module = load_module(path)
        contracts += [Named(f"{path}: {one.kernel}", one) for one in contracts_of(module, path)]
        for arch in archs:
            name = f"{path} for {arch}"
            try:
                sources.extend(Source(name, data) for data in cubins_of(module, arch))
            except FactUnavailable as error:
                sources.append(Source(name, b"", str(error)))
    return sources, contracts


def _strange(data: bytes) -> tuple[str, str, str] | None:
    """What bytes are that no front end takes, what is wanted, and how to get it; or None."""
    want = "a cubin, PTX, or a module of the CuTe DSL (.py)"
    if looks_like_ptx(data) or is_cubin(data):
        return None
    if data.startswith((ELF, FAT)):
        what = "a program or library of the host" if data.startswith(ELF) else "a fat binary"
        return what, want, "take the cubins out of it: `cuobjdump -xelf all FILE`"
    return ("neither cubin nor PTX" if data else "an empty file"), want, ""


def audit_files(
    files: Sequence[Source],
    contracts: Sequence[Named],
    approvals: Approvals,
    as_of: date,
    only: str = "*",
) -> tuple[Outcome, ...]:
    """Audits every kernel of some files.

    Args:
        files: as `gathered`.
        contracts: contracts; each must be some kernel's.
        approvals: skeletons and waivers that people approved.
        as_of: the UTC day on which waivers must hold.
        only: which kernels; `*` stands for any characters.

    Raises:
        InputError: a contract fits no kernel although all could be read, two fit one, or one does
            not fit its kernel; or the tools that read cubins are not installed.
    """
    found: list[Outcome] = []
    used: set[str] = set()
    for file in files:
        try:
            kernels = _kernels(file)
        except FactUnavailable as error:
            found.append(_unread(file, str(error)))
            continue
        for kernel in kernels:
            if matches(kernel.name, only):
                named = _contract_of(kernel, contracts)
                used |= {named.source} if named is not None else set()
                found.append(_outcome(file, kernel, named, approvals, as_of))
    if all(one.audited.kernel != UNREAD for one in found):  # else it may be that file's
        _require_used(contracts, used, only)
    return tuple(found)


def hazards_of(
    outcomes: Sequence[Outcome], recorded: Recorded | None, source: str
) -> tuple[Hazard, ...]:
    """Launches that touch the same memory without an order.

    Args:
        outcomes: as `audit_files`: which kernels wait, and the neighbours in their contracts.
        recorded: a recorded sequence, too, or None.
        source: how messages name that.

    Raises:
        InputError: a kernel that was launched early is in no file that was audited, or its
            contract says that it never is.
    """
    found = [
        hazard
        for one in outcomes
        if one.named is not None and one.named.contract.neighbours
        for hazard in neighbour_hazards(one.named.contract, one.waits, one.named.source)
    ]
    if recorded is not None:
        check_sequence(recorded, source)
        _require_known(recorded, outcomes, source)
        waits: dict[str, bool] = {}
        for one in outcomes:
            waits[one.audited.kernel] = waits.get(one.audited.kernel, True) and one.waits
        found += hazards(recorded.sequence, waits, source)
    return tuple(dict.fromkeys(found))


def _require_known(recorded: Recorded, outcomes: Sequence[Outcome], source: str) -> None:
    known = {one.audited.kernel for one in outcomes}
    never = {
        one.audited.kernel
        for one in outcomes
        if one.named is not None and not one.named.contract.pdl
    }
    problems = []
    for at, edges in enumerate(edges_of(recorded.sequence)):
        kernel, where = recorded.sequence[at].kernel, f"{source}: sequence[{at}]"
        if not any(edge.programmatic for edge in edges):
            continue
        if kernel not in known:
            want = "a kernel of the audited files, or its wait is not known"
            problems.append(
                Problem(where, f"{kernel!r} launched early", want, "name its cubin, too")
            )
        elif kernel in never:
            want = "`pdl: true` in the contract of a kernel that is launched early"
            problems.append(Problem(where, f"{kernel!r} launched early", want))
    if problems:
        raise InputError(problems)


def _kernels(file: Source) -> tuple[Kernel, ...]:
    if file.unread:
        raise FactUnavailable(file.unread)
    ptx = looks_like_ptx(file.data)
    kernels = read_cubin(cubin_of(file.data, file.name) if ptx else file.data)
    if not kernels:
        raise FactUnavailable("it names no kernel")
    return kernels


def _contract_of(kernel: Kernel, contracts: Sequence[Named]) -> Named | None:
    fitting = [one for one in contracts if speaks_of(one.contract, kernel)]
    if len(fitting) > 1:
        both = " and ".join(one.source for one in fitting)
        raise InputError.one(kernel.name, f"contracts {both}", "one contract for a kernel")
    for one in fitting:
        check_against(one.contract, kernel, one.source)
        return one
    return None


def _outcome(
    file: Source, kernel: Kernel, named: Named | None, approvals: Approvals, as_of: date
) -> Outcome:
    approved = approvals.skeleton(kernel.name, kernel.arch)
    audited = audit(kernel, named.contract if named is not None else None, approved)
    waiver = approvals.waiver(audited, as_of)
    why = "" if waiver is not None else approvals.no_waiver(audited, as_of)
    if waiver is not None and named is None:
        # Of a kernel nobody described everything is unproven, also what its contract would refute.
        waiver, why = None, "nothing waives a kernel without a contract"
    return Outcome(file.name, audited, waiver, kernel.toolchain, named, why)


def _require_used(contracts: Sequence[Named], used: set[str], only: str) -> None:
    unused: Iterator[Named] = (one for one in contracts if one.source not in used)
    problems = [
        Problem(one.source, f"a contract of {one.contract.kernel!r}", "a kernel that it speaks of")
        for one in unused
    ]
    if problems and only == "*":
        raise InputError(problems)


def _unread(file: Source, why: str) -> Outcome:
    finding = Finding(
        rule="READ",
        verdict=Verdict.UNPROVEN,
        saw=why,
        want="machine code that can be read to its end",
        fix="audit the cubin as it is loaded, with a disassembler that knows its architecture",
    )
    audited = Audited(
        kernel=UNREAD,
        arch=UNREAD,
        verdict=Verdict.UNPROVEN,
        findings=(finding,),
        waits=(),
        triggers=(),
        fences=(),
        skeleton="",
        cubin=hashlib.sha256(file.data).hexdigest(),
        instructions=0,
    )
    return Outcome(file.name, audited, None, Toolchain("", ""))
