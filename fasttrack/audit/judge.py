# SPDX-License-Identifier: Apache-2.0
"""The audit of one kernel: follow it, ask every rule, and say what is known.

`proved` needs all of it: a contract, an architecture that is known, every instruction followed,
and no finding. Whatever could not be told makes it `unproven`.
"""

from collections.abc import Iterator

from fasttrack.audit.contract import Contract
from fasttrack.audit.finding import Audited, Finding, Verdict
from fasttrack.audit.flow.explore import Unbounded
from fasttrack.audit.flow.facts import facts_of
from fasttrack.audit.flow.layout import DRIVERS
from fasttrack.audit.program import Instruction, Kernel
from fasttrack.audit.rules import RULES
from fasttrack.audit.skeleton import skeleton_of

ARCHITECTURES = ("sm_90a", "sm_100a", "sm_103a")
"""Those on which the rules were held against kernels that are known to be wrong."""


def audit(kernel: Kernel, contract: Contract | None, approved_skeleton: str | None) -> Audited:
    """Judges a kernel.

    Args:
        kernel: as read from a cubin.
        contract: what its parameters are; without one it is `unproven`.
        approved_skeleton: digest of the skeleton that a person last approved, if there is one.
    """
    skeleton = skeleton_of(kernel)
    findings = [*_read(kernel, contract), *_order(skeleton, approved_skeleton)]
    if contract is not None and not any(one.rule == "READ" for one in findings):
        try:
            facts = facts_of(kernel, contract)
            findings.extend(finding for check in RULES for finding in check(facts))
        except Unbounded as error:
            findings.append(_unread(str(error), "a kernel of fewer ways", "split the kernel"))
    found = tuple(sorted(dict.fromkeys(_joined(findings)), key=_place))
    return Audited(
        kernel=kernel.name,
        arch=kernel.arch,
        verdict=gravest(found),
        findings=found,
        waits=_addresses(kernel, "ACQBULK"),
        triggers=_addresses(kernel, "PREEXIT"),
        fences=_addresses(kernel, "MEMBAR", "FENCE"),
        skeleton=skeleton,
        cubin=kernel.cubin,
        instructions=len(kernel.instructions),
    )


def gravest(findings: tuple[Finding, ...]) -> Verdict:
    """The verdict of a kernel: that of its gravest finding."""
    verdicts = {one.verdict for one in findings}
    for verdict in (Verdict.VIOLATED, Verdict.UNPROVEN):
        if verdict in verdicts:
            return verdict
    return Verdict.PROVED


def _unread(saw: str, want: str, fix: str) -> Finding:
    return Finding("READ", Verdict.UNPROVEN, saw, want, fix)


def _read(kernel: Kernel, contract: Contract | None) -> Iterator[Finding]:
    """Why a kernel can not be followed at all."""
    if contract is None:
        yield _unread("there is no contract", "what each parameter points to", "write a contract")
    elif len(contract.parameters) != len(kernel.parameters):
        yield _unread(
            f"the contract names {len(contract.parameters)} parameters, "
            f"the kernel has {len(kernel.parameters)}",
            "one entry for each parameter", "write the contract of this kernel",
        )  # fmt: skip
    if kernel.arch not in ARCHITECTURES:
        yield _unread(
            f"{kernel.arch} is not known", f"one of {', '.join(ARCHITECTURES)}",
            "validate the rules on that architecture first",
        )  # fmt: skip
    elif kernel.bank_offset not in DRIVERS:
        yield _unread(
            f"parameters would begin at {kernel.bank_offset:#x}",
            f"one of {', '.join(map(hex, DRIVERS))}", "give the kernel a parameter",
        )  # fmt: skip
    if not kernel.instructions:
        yield _unread("there are no instructions", "machine code", "compile the kernel")


def _order(skeleton: str, approved: str | None) -> Iterator[Finding]:
    if approved is not None and approved != skeleton:
        yield Finding(
            "SKELETON", Verdict.UNPROVEN,
            f"the order of memory accesses and synchronisation is {skeleton[:12]}",
            f"the order that was approved, {approved[:12]}",
            "compare the machine code of both builds, then approve the new order",
        )  # fmt: skip


def _joined(findings: list[Finding]) -> Iterator[Finding]:
    """One finding for each rule, instruction and parameter: the gravest, with its path."""
    kept: dict[tuple[str, int | None, str, str], Finding] = {}
    for one in findings:
        key = (one.rule, one.address, one.parameter, one.saw)
        old = kept.get(key)
        if old is None or (old.verdict is Verdict.UNPROVEN and one.verdict is Verdict.VIOLATED):
            kept[key] = one
    return iter(kept.values())


def _place(finding: Finding) -> tuple[int, str, str]:
    return (-1 if finding.address is None else finding.address, finding.rule, finding.parameter)


def _addresses(kernel: Kernel, *opcodes: str) -> tuple[int, ...]:
    found: list[Instruction] = [one for one in kernel.instructions if one.opcode in opcodes]
    return tuple(one.address for one in found)
