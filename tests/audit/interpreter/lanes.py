# SPDX-License-Identifier: Apache-2.0
"""Registers of all threads at once, and operands as arrays over them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasttrack.audit.program import (
    Address,
    Constant,
    File,
    Immediate,
    Instruction,
    Operand,
    Register,
)

WARP = 32
Words = NDArray[np.uint32]
Wide = NDArray[np.uint64]
Mask = NDArray[np.bool_]


class NotExecuted(Exception):
    """An instruction, or a form of it, that the interpreter does not know."""


class Stuck(NotExecuted):
    """Threads wait for each other without an end, or run without one."""


class Lanes:
    """The register files; one column a thread.

    Uniform registers are kept for each thread: threads of a warp that went different ways may not
    see each other's, and no compiler lets them.
    """

    def __init__(self, threads: int, constants: dict[int, int]) -> None:
        self.threads = threads
        self.words = {
            File.R: np.zeros((256, threads), np.uint32),
            File.UNIFORM: np.zeros((256, threads), np.uint32),
        }
        self.truths = {
            File.PREDICATE: np.ones((8, threads), np.bool_),
            File.UNIFORM_PREDICATE: np.ones((8, threads), np.bool_),
        }
        self.constants = constants

    def truth(self, register: Operand) -> Mask:
        """A predicate, with its negation."""
        if not isinstance(register, Register) or register.file not in self.truths:
            raise NotExecuted(f"{register} is no predicate")
        index = 7 if register.index is None else register.index
        value = self.truths[register.file][index]
        return ~value if register.negated else value

    def word(self, operand: Operand, *, inverted: bool = False) -> Words:
        """32 bits of an operand; a sign negates, or inverts where `inverted` says so."""
        if isinstance(operand, Register) and operand.file in self.words:
            value = self._register(operand, 0)
            if operand.absolute:
                raise NotExecuted("an absolute value")
        elif isinstance(operand, Immediate):
            value = np.full(self.threads, operand.value, np.uint32)
        elif isinstance(operand, Constant):
            value = self.constant(operand, 0)
        else:
            raise NotExecuted(f"{operand} as a number")
        if not getattr(operand, "negated", False):
            return value
        return ~value if inverted else np.uint32(0) - value

    def wide(self, operand: Operand) -> Wide:
        """64 bits of an operand."""
        if isinstance(operand, Register) and operand.file in self.words:
            low, high = self._register(operand, 0), self._register(operand, 1)
        elif isinstance(operand, Constant):
            low, high = self.constant(operand, 0), self.constant(operand, 4)
        elif isinstance(operand, Immediate):
            return np.full(self.threads, operand.value, np.uint64)
        else:
            raise NotExecuted(f"{operand} as a wide number")
        value = low.astype(np.uint64) | (high.astype(np.uint64) << np.uint64(32))
        return np.uint64(0) - value if getattr(operand, "negated", False) else value

    def _register(self, operand: Register, more: int) -> Words:
        if operand.index is None:
            return np.zeros(self.threads, np.uint32)
        return self.words[operand.file][operand.index + more]

    def constant(self, operand: Constant, more: int) -> Words:
        """32 bits of constant bank 0."""
        if operand.bank != 0:
            raise NotExecuted(f"constant bank {operand.bank}")
        if operand.index is None:
            value = self.constants.get(operand.offset + more, 0)
            return np.full(self.threads, value, np.uint32)
        at = (self.word(operand.index).astype(np.int64) + operand.offset + more) & 0xFFFFFFFF
        return np.array([self.constants.get(int(one), 0) for one in at], np.uint32)

    def set_word(self, to: Operand, value: Any, mask: Mask, more: int = 0) -> None:
        """Writes 32 bits of the masked threads' register."""
        if not isinstance(to, Register) or to.file not in self.words:
            raise NotExecuted(f"{to} as a destination")
        if to.index is not None:
            np.copyto(self.words[to.file][to.index + more], value, where=mask, casting="unsafe")

    def set_wide(self, to: Operand, value: Wide, mask: Mask) -> None:
        """Writes 64 bits into a register and the next."""
        self.set_word(to, (value & np.uint64(0xFFFFFFFF)).astype(np.uint32), mask)
        self.set_word(to, (value >> np.uint64(32)).astype(np.uint32), mask, 1)

    def set_truth(self, to: Operand, value: Any, mask: Mask) -> None:
        """Writes the masked threads' predicate."""
        if not isinstance(to, Register) or to.file not in self.truths:
            raise NotExecuted(f"{to} as a destination")
        if to.index is not None:
            np.copyto(self.truths[to.file][to.index], value, where=mask)

    def address(self, operand: Operand, *, wide: bool) -> Wide:
        """Where an address operand points, of each thread."""
        if not isinstance(operand, Address):
            raise NotExecuted(f"{operand} as an address")
        read = self.wide if wide else self.word
        at = np.full(self.threads, operand.offset & 0xFFFFFFFFFFFFFFFF, np.uint64)
        if operand.base is not None:
            at += read(operand.base).astype(np.uint64)
        if operand.uniform is not None:
            at += self.wide(operand.uniform) if wide else self.word(operand.uniform)
        return at if wide else at & np.uint64(0xFFFFFFFF)

    def by_warp(self, mask: Mask) -> Mask:
        """The mask with one row for each warp."""
        return mask.reshape(-1, WARP)

    def first(self, mask: Mask) -> Mask:
        """The first masked thread of each warp."""
        rows = self.by_warp(mask)
        return ((rows.cumsum(axis=1) == 1) & rows).reshape(-1)

    def from_first(self, value: Words, mask: Mask) -> Words:
        """Of each warp, the value of its first masked thread, for all of it."""
        at = self.by_warp(mask).argmax(axis=1)
        rows = value.reshape(-1, WARP)
        return np.repeat(rows[np.arange(len(rows)), at], WARP)


def guard(lanes: Lanes, instruction: Instruction, mask: Mask) -> Mask:
    """The threads of the mask for which an instruction's guard holds."""
    return mask if instruction.guard is None else mask & lanes.truth(instruction.guard)
