# SPDX-License-Identifier: Apache-2.0
"""Operands as `nvdisasm` writes them, such as `desc[UR4][R2.64+0x10]` or `c[0x0][R0+0x3a0]`."""

import re
import struct
from functools import lru_cache

from fasttrack.audit.program import (
    Address,
    Constant,
    File,
    Immediate,
    Operand,
    Register,
    Special,
    Target,
)

_REGISTER = re.compile(
    r"(?P<sign>[-!~]?)(?P<bar>\|?)(?P<file>UR|UP|R|P|B)(?P<index>\d+|Z|T)\|?"
    r"(?P<words>(?:\.\w+)*)$"
)
_NUMBER = re.compile(r"-?(?:0x[0-9a-f]+|\d+)$")
_FLOAT = re.compile(r"[-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|INF|QNAN|SNAN)$")
_CONSTANT = re.compile(r"(?P<sign>-?)(?P<bar>\|?)c\[(?P<bank>[^\]]*)\]\[(?P<inner>[^\]]*)\]\|?$")
_MEMORY = re.compile(r"(?:g?desc\[(?P<descriptor>[^\]]*)\])?\[(?P<inner>[^\]]*)\](?:\.\w+)*$")
BRANCHES = frozenset({"BRA", "BSSY", "CALL", "JMP", "BREAK", "WARPSYNC"})
"""Opcodes whose last plain number is the address of an instruction."""


def split(text: str) -> list[str]:
    """The operands of an instruction: parts between commas that are in no bracket."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        if char in "[{(":
            depth += 1
        elif char in "]})":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if last or parts else []


def register(text: str) -> Register | None:
    """The register that is written so, or None."""
    match = _REGISTER.match(text)
    if match is None:
        return None
    file, index = File(match["file"]), match["index"]
    if (index == "Z") is (file in (File.PREDICATE, File.UNIFORM_PREDICATE)) and not index.isdigit():
        return None
    return Register(
        file,
        int(index) if index.isdigit() else None,
        negated=bool(match["sign"]),
        absolute=bool(match["bar"]),
        wide=".64" in match["words"],
    )


def _inside(text: str) -> tuple[list[Register], int] | None:
    """Registers and the number in `R2.64+UR4+0x10`; None if there is anything else."""
    found: list[Register] = []
    offset = 0
    for part in re.findall(r"[^+\-]+|-[^+\-]+", text.replace("+-", "-")):
        term = part.strip()
        one = register(term)
        if one is not None:
            found.append(one)
        elif _NUMBER.match(term):
            offset += int(term, 0)
        else:
            return None
    return found, offset


def _constant(match: re.Match[str]) -> Operand | None:
    inner = _inside(match["inner"])
    if inner is None or len(inner[0]) > 1:
        return None
    bank = int(match["bank"], 0) if _NUMBER.match(match["bank"]) else None
    index = inner[0][0] if inner[0] else None
    return Constant(bank, inner[1], index, match["sign"] == "-", bool(match["bar"]))


def _address(match: re.Match[str]) -> Operand | None:
    inner = _inside(match["inner"])
    if inner is None:
        return None
    plain = [one for one in inner[0] if one.file is File.R]
    uniform = [one for one in inner[0] if one.file is File.UNIFORM]
    if len(plain) + len(uniform) != len(inner[0]) or len(plain) > 1 or len(uniform) > 1:
        return None
    descriptor = register(match["descriptor"]) if match["descriptor"] else None
    return Address(
        plain[0] if plain else None, uniform[0] if uniform else None, inner[1], descriptor
    )


def _bits(text: str) -> int:
    value = text.replace("QNAN", "nan").replace("SNAN", "nan")
    try:
        return int(struct.unpack("<I", struct.pack("<f", float(value)))[0])
    except OverflowError:
        return 0x7F800000


@lru_cache(maxsize=1 << 16)
def operand(opcode: str, text: str, last: bool) -> Operand:
    """One operand; whatever has no form of its own is `Special`.

    Args:
        opcode: first word of the instruction: a number means an instruction in branches.
        text: the operand.
        last: whether it is the last one.
    """
    found: Operand | None = register(text)
    if found is None and _NUMBER.match(text):
        value = int(text, 0)
        found = Target(value) if last and opcode in BRANCHES else Immediate(value & 0xFFFFFFFF)
    if found is None and (match := _CONSTANT.match(text)):
        found = _constant(match)
    if found is None and (match := _MEMORY.match(text)):
        found = _address(match)
    if found is None and _FLOAT.match(text):
        found = Immediate(_bits(text))
    return Special(text) if found is None else found
