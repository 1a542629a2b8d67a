# SPDX-License-Identifier: Apache-2.0
"""Kernels written as a few lines of machine code, so that a test needs no compiler.

`PROLOGUE` is what most kernels begin with. R2, R4 and R6 are the thread's elements of `w`, `x` and
`y`; R8 points to `f`; R10 is `n`. P0 is false in thread 0 alone, P1 false in warp 0 alone, and P2
is true if `n` is positive.
"""

import re
from collections.abc import Sequence
from typing import Any

from fasttrack.audit.contract import Contract
from fasttrack.audit.program import Instruction, Kernel, Parameter, SourceLine, Toolchain
from fasttrack.audit.read.operands import operand, register, split

PROLOGUE = """
S2R R0, SR_TID.X
LDC.64 R2, c[0x0][0x210]
LDC.64 R4, c[0x0][0x218]
LDC.64 R6, c[0x0][0x220]
LDC.64 R8, c[0x0][0x228]
LDC R10, c[0x0][0x230]
ULDC.64 UR4, c[0x0][0x208]
IMAD.WIDE R2, R0, 0x4, R2
IMAD.WIDE R4, R0, 0x4, R4
IMAD.WIDE R6, R0, 0x4, R6
ISETP.NE.AND P0, PT, R0, RZ, PT
ISETP.GT.U32.AND P1, PT, R0, 0x1f, PT
ISETP.GT.AND P2, PT, R10, RZ, PT
"""
NAMES = ("w", "x", "y", "f", "n")
HOLDS = {"w": "static", "x": "dynamic", "y": "out", "f": "flag", "n": "scalar"}
_LABEL = re.compile(r"(?P<label>\w+):$")


def instructions_of(text: str) -> tuple[Instruction, ...]:
    """The instructions of a listing; a line `name:` names the address of the next one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    labels: dict[str, int] = {}
    code: list[str] = []
    for line in lines:
        match = _LABEL.match(line)
        if match is None:
            code.append(line)
        else:
            labels[match["label"]] = len(code) * 16
    return tuple(_instruction(at, line, labels) for at, line in enumerate(code))


def _instruction(at: int, line: str, labels: dict[str, int]) -> Instruction:
    guard, _, rest = line.partition(" ") if line.startswith("@") else ("", "", line)
    word, _, operands = rest.partition(" ")
    opcode, *modifiers = word.split(".")
    parts = [f"{labels[part]:#x}" if part in labels else part for part in split(operands.strip())]
    return Instruction(
        at * 16, opcode, tuple(modifiers),
        tuple(operand(opcode, part, i == len(parts) - 1) for i, part in enumerate(parts)),
        register(guard.removeprefix("@")) if guard else None,
        line, SourceLine("listing", at),
    )  # fmt: skip


def kernel_of(text: str, sizes: Sequence[int] = (8, 8, 8, 8, 4), arch: str = "sm_90a") -> Kernel:
    """A kernel of that listing, whose parameters follow each other."""
    offsets = [sum(sizes[:at]) for at in range(len(sizes))]
    return Kernel(
        name="kernel",
        arch=arch,
        instructions=instructions_of(text),
        parameters=tuple(
            Parameter(at, offset, size)
            for at, (offset, size) in enumerate(zip(offsets, sizes, strict=True))
        ),
        bank_offset=0x210,
        threads=None,
        cubin="0" * 64,
        toolchain=Toolchain("", ""),
    )


def contract_of(parameters: dict[str, Any] | None = None, **others: Any) -> Contract:
    """A contract over `w`, `x`, `y`, `f` and `n`.

    Args:
        parameters: what differs from `HOLDS`, by name: a class, or fields of the parameter.
        others: fields of the contract that differ.
    """
    said = {name: {"name": name, "holds": HOLDS[name]} for name in NAMES}
    for name, what in (parameters or {}).items():
        said[name] = said[name] | (what if isinstance(what, dict) else {"holds": what})
    fields = {
        "contract": 1, "kernel": "kernel", "block": (128, 1, 1), "cluster": 1, "pdl": True,
        "parameters": tuple(said.values()), "reads": ("w", "x"), "writes": ("y",),
    }  # fmt: skip
    return Contract.model_validate(fields | others, strict=False)
