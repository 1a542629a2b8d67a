# SPDX-License-Identifier: Apache-2.0
"""The skeleton of a kernel: its memory accesses and synchronisation, in the order of addresses.

A compiler that moves a load changes it; one that only allocates registers otherwise does not.
"""

import hashlib

from fasttrack.audit.flow.opcodes import KNOWN, READS, WRITES
from fasttrack.audit.program import Constant, Immediate, Instruction, Kernel

_KEPT = (
    READS.keys()
    | WRITES.keys()
    | {"ACQBULK", "PREEXIT", "MEMBAR", "FENCE", "CCTL", "ERRBAR", "DEPBAR", "UTMACMDFLUSH"}
    | {"BAR", "UCGABAR_ARV", "UCGABAR_WAIT", "WARPSYNC", "SYNCS", "ARRIVES", "UTCBAR"}
    | {"LDS", "STS", "LDSM", "STSM", "ATOMS", "LDC", "LDCU", "ULDC"}
    | {"BRA", "BRX", "EXIT", "CALL", "RET"}
)


def line_of(instruction: Instruction) -> str:
    """An instruction without its registers: opcode, and numbers that are no addresses."""
    words = [".".join((instruction.opcode, *instruction.modifiers))]
    if instruction.guard is not None:
        words.insert(0, "@")
    for operand in instruction.operands:
        if isinstance(operand, Constant):
            words.append(f"c[{operand.bank}][{operand.offset:#x}]")
        elif isinstance(operand, Immediate) and instruction.opcode in ("BAR", "DEPBAR"):
            words.append(f"{operand.value:#x}")
    return " ".join(words)


def skeleton_of(kernel: Kernel) -> str:
    """SHA-256 over the skeleton."""
    kept = [
        line_of(one)
        for one in kernel.instructions
        if one.opcode in _KEPT or one.opcode not in KNOWN
    ]
    return hashlib.sha256("\n".join(kept).encode()).hexdigest()
