# SPDX-License-Identifier: Apache-2.0
"""Votes, constants and floats; and the table of all instructions that touch registers alone."""

import re

import numpy as np

from fasttrack.audit.program import Constant, Instruction

from .alu import (
    Step,
    add,
    combine,
    compare,
    is_truth,
    least,
    lookup,
    move,
    multiply,
    permute,
    scale,
    select,
    shift,
)
from .lanes import WARP, Lanes, Mask, NotExecuted

WORDS = {"64": 2, "128": 4}
HALVES = re.compile(r"-RZ, RZ, ([-+.\de]+), ([-+.\de]+)$")


def _to_uniform(lanes: Lanes, one: Instruction, mask: Mask) -> None:
    lanes.set_word(one.operands[0], lanes.from_first(lanes.word(one.operands[1]), mask), mask)


def _elect(lanes: Lanes, one: Instruction, mask: Mask) -> None:
    lanes.set_truth(one.operands[0], lanes.first(mask), mask)


def _vote(lanes: Lanes, one: Instruction, mask: Mask) -> None:
    """`VOTEU.ALL UP0, P0`, or `VOTE.ANY R0, PT, P0` with the voters as bits."""
    operands = list(one.operands)
    bits = None if is_truth(operands[0]) else operands.pop(0)
    votes = lanes.truth(operands[-1]) & mask
    rows = lanes.by_warp(votes)
    absent = ~lanes.by_warp(mask)
    said = (rows | absent).all(axis=1) if "ALL" in one.modifiers else rows.any(axis=1)
    lanes.set_truth(operands[0], np.repeat(said, WARP), mask)
    if bits is not None:
        weights = np.uint32(1) << np.arange(WARP, dtype=np.uint32)
        lanes.set_word(bits, np.repeat((rows * weights).sum(axis=1), WARP), mask)


def _zero(lanes: Lanes, one: Instruction, mask: Mask) -> None:
    for more in (0, 1):
        lanes.set_word(one.operands[0], np.uint32(0), mask, more)


def _popc(lanes: Lanes, one: Instruction, mask: Mask) -> None:
    value = [int(word).bit_count() for word in lanes.word(one.operands[1])]
    lanes.set_word(one.operands[0], np.array(value, np.uint32), mask)


def _flo(lanes: Lanes, one: Instruction, mask: Mask) -> None:
    value = [(int(word).bit_length() - 1) & 0xFFFFFFFF for word in lanes.word(one.operands[1])]
    lanes.set_word(one.operands[0], np.array(value, np.uint32), mask)


def _shuffle(lanes: Lanes, one: Instruction, mask: Mask) -> None:
    to_truth, to, value, by, _ = one.operands
    if "IDX" not in one.modifiers and "BFLY" not in one.modifiers and "DOWN" not in one.modifiers:
        raise NotExecuted(one.text)
    own = np.arange(lanes.threads)
    how = lanes.word(by).astype(np.int64) & 31
    lane = own % WARP
    source = {"IDX": how, "BFLY": lane ^ how, "DOWN": lane + how}[one.modifiers[0]]
    source = np.where(source < WARP, source, lane)
    lanes.set_word(to, lanes.word(value)[own - lane + source], mask)
    lanes.set_truth(to_truth, True, mask)


def _half(text: str) -> int:
    return int(np.float16(float(text)).view(np.uint16))


def _hfma2(lanes: Lanes, one: Instruction, mask: Mask) -> None:
    """The form by which compilers write a constant; else as any arithmetic of floats."""
    written = HALVES.search(one.text)
    if written is None:
        _float(lanes, one, mask)
    else:
        value = _half(written[1]) << 16 | _half(written[2])
        lanes.set_word(one.operands[0], np.uint32(value), mask)


def _load_constant(lanes: Lanes, one: Instruction, mask: Mask) -> None:
    to, source = one.operands
    words = next((WORDS[word] for word in one.modifiers if word in WORDS), 1)
    if not isinstance(source, Constant) or "U8" in one.modifiers or "U16" in one.modifiers:
        raise NotExecuted(one.text)
    values = [lanes.constant(source, 4 * more).copy() for more in range(words)]
    for more, value in enumerate(values):
        lanes.set_word(to, value, mask, more)


def _float(lanes: Lanes, one: Instruction, mask: Mask) -> None:
    """Any arithmetic of floats: its value matters to no address, so it is a fixed one."""
    lanes.set_word(one.operands[0], np.uint32(0x3F800000), mask)


def _float_test(lanes: Lanes, one: Instruction, mask: Mask) -> None:
    """Any comparison of floats: fails, as it does with the NaNs that poison is made of."""
    lanes.set_truth(one.operands[0], False, mask)
    lanes.set_truth(one.operands[1], False, mask)


FLOATS = ("FADD", "FMUL", "FFMA", "HADD2", "I2FP", "I2F", "FSEL", "FMNMX", "MUFU",
          "FADD2", "FFMA2", "FMUL2")  # fmt: skip
VECTOR: dict[str, Step] = {
    "IADD3": add, "IADD": add, "VIADD": add, "IMAD": multiply, "LEA": scale, "SHF": shift,
    "LOP3": lookup, "PLOP3": combine, "ISETP": compare, "MOV": move, "SEL": select,
    "VIMNMX": least, "IMNMX": least, "VOTE": _vote, "POPC": _popc, "FLO": _flo,
    "R2UR": _to_uniform, "ELECT": _elect, "CS2R": _zero, "SHFL": _shuffle, "LDC": _load_constant,
    "HFMA2": _hfma2, "PRMT": permute,
    "FSETP": _float_test, **dict.fromkeys(FLOATS, _float),
}  # fmt: skip
FORMS = {
    "IADD3": "X 64", "IADD": "64", "IMAD": "WIDE HI U32 X MOV IADD SHL", "LEA": "HI X SX32",
    "SHF": "L R HI U32 S32 U64 S64", "LOP3": "LUT", "PLOP3": "LUT", "VIMNMX": "U32 S32",
    "ISETP": "LT LE GT GE EQ NE U32 AND OR XOR EX", "IMNMX": "U32", "VOTE": "ALL ANY",
    "FLO": "U32", "SHFL": "IDX BFLY DOWN", "LDC": "64 128", "CS2R": "32",
}  # fmt: skip
"""Words after an opcode that are known; all are, of the arithmetic of floats."""
UNIFORM = {
    "UMOV": move,
    "VOTEU": _vote,
    "LDCU": _load_constant,
    "ULDC": _load_constant,
    "USEL": select,
}
STEPS: dict[str, Step] = {
    **VECTOR,
    **{f"U{name}": step for name, step in VECTOR.items() if name not in ("R2UR", "ELECT")},
    **UNIFORM,
}


def calculate(lanes: Lanes, one: Instruction, mask: Mask) -> None:
    """One instruction that touches registers alone.

    Raises:
        NotExecuted: it has a form that is not known here.
    """
    step = STEPS[one.opcode]
    if step not in (_float, _float_test, _hfma2):
        plain = {"LDCU": "LDC", "ULDC": "LDC", "VOTEU": "VOTE"}.get(one.opcode, one.opcode)
        known = FORMS.get(plain, FORMS.get(plain.removeprefix("U"), "")).split()
        if not set(one.modifiers) <= set(known):
            raise NotExecuted(one.text)
    step(lanes, one, mask)
