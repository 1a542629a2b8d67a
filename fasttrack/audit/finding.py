# SPDX-License-Identifier: Apache-2.0
"""What an audit says: findings, and a verdict for each kernel and architecture."""

from dataclasses import dataclass
from enum import StrEnum

from fasttrack.audit.program import SourceLine


class Verdict(StrEnum):
    """What is known of a kernel."""

    PROVED = "proved"
    """Under the contract, no read is out of order on any path."""
    VIOLATED = "violated"
    """A read, write or wait is out of order."""
    UNPROVEN = "unproven"
    """It could not be shown either way; a person decides, with a waiver."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or that could not be shown.

    Attributes:
        rule: `NC`, `DOM`, `NO-WAIT`, `STORE`, `TRIG`, `FENCE`, `REREAD`, `SKELETON` or `READ`
            (the kernel could not be read or followed).
        verdict: `VIOLATED` or `UNPROVEN`.
        saw: what the machine code does, in one sentence.
        want: what would be in order.
        fix: what to do.
        address: of the instruction, or None for the whole kernel.
        text: the instruction.
        source: its line in PTX, CUDA or Python, where that is known.
        parameter: name of the parameter in the contract, or empty.
        path: addresses of instructions that lead there: entry, branches taken, the instruction.
    """

    rule: str
    verdict: Verdict
    saw: str
    want: str
    fix: str
    address: int | None = None
    text: str = ""
    source: SourceLine | None = None
    parameter: str = ""
    path: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Audited:
    """The result for one kernel on one architecture.

    Attributes:
        kernel: symbol of the kernel.
        arch: such as `sm_103a`.
        verdict: the gravest of the findings'; `PROVED` without any.
        findings: in order of addresses, then rules.
        waits, triggers, fences: addresses of those instructions.
        skeleton: SHA-256 over the order of memory accesses and synchronisation.
        cubin: SHA-256 of the cubin's bytes.
        instructions: how many there are.
    """

    kernel: str
    arch: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    waits: tuple[int, ...]
    triggers: tuple[int, ...]
    fences: tuple[int, ...]
    skeleton: str
    cubin: str
    instructions: int
