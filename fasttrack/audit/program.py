# SPDX-License-Identifier: Apache-2.0
"""What a kernel is after reading: instructions, parameters, and where it came from.

Front ends (`read/`) make these; everything else of the audit looks at nothing but these and the
contract. Words are those of `nvdisasm`: `LDG.E.CONSTANT R2, desc[UR4][R6.64+0x10]`.
"""

from dataclasses import dataclass
from enum import Enum


class File(Enum):
    """The register files of a kernel."""

    R = "R"
    UNIFORM = "UR"
    PREDICATE = "P"
    UNIFORM_PREDICATE = "UP"
    BARRIER = "B"
    """Convergence barriers (`BSSY B0`), which order threads of a warp, not memory."""


ZERO = {File.R: "RZ", File.UNIFORM: "URZ", File.PREDICATE: "PT", File.UNIFORM_PREDICATE: "UPT"}
"""The register of each file that always reads as zero, or true for predicates."""


@dataclass(frozen=True, slots=True)
class Register:
    """A register as an operand. `index` is None for the one that always reads as zero or true."""

    file: File
    index: int | None
    negated: bool = False
    """`!P0`, `-R2` or `~R2`."""
    absolute: bool = False
    wide: bool = False
    """`R2.64`: this one and the next."""


@dataclass(frozen=True, slots=True)
class Immediate:
    """A number in the instruction; a float's 32 bits where it was written as a float."""

    value: int


@dataclass(frozen=True, slots=True)
class Constant:
    """`c[bank][offset]`, `c[bank][R0+offset]`, or `cx[UR4][offset]` with the bank in a register."""

    bank: int | None
    offset: int
    index: Register | None = None
    negated: bool = False
    absolute: bool = False


@dataclass(frozen=True, slots=True)
class Address:
    """`[R2.64+UR4+0x10]` and, for global memory, its descriptor `desc[UR4]`."""

    base: Register | None
    uniform: Register | None = None
    offset: int = 0
    descriptor: Register | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """The address of another instruction."""

    address: int


@dataclass(frozen=True, slots=True)
class Special:
    """Any other word, such as `SR_TID.X` or `gdesc[UR4]`, as it was written."""

    text: str


Operand = Register | Immediate | Constant | Address | Target | Special


@dataclass(frozen=True, slots=True)
class SourceLine:
    """Where an instruction comes from, as the compiler recorded it."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction.

    Attributes:
        address: bytes from the start of the kernel.
        opcode: the first word, such as `LDG`.
        modifiers: the words after it, such as `("E", "CONSTANT")`.
        operands: destinations first, as they were written.
        guard: the predicate under which it runs, if there is one.
        text: the whole instruction as `nvdisasm` writes it.
        source: the line that it comes from, where line information exists.
    """

    address: int
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Register | None
    text: str
    source: SourceLine | None = None


@dataclass(frozen=True, slots=True)
class Parameter:
    """Where a parameter lies: byte offset from the start of the parameters, and size in bytes."""

    ordinal: int
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Toolchain:
    """Which tools made and read a kernel, as they say themselves; empty where they do not."""

    assembler: str
    disassembler: str


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of a cubin.

    Attributes:
        name: symbol of the kernel.
        arch: such as `sm_90a`.
        instructions: in order of their addresses, without holes; 16 bytes each.
        parameters: in order of their ordinals.
        bank_offset: where parameters begin in constant bank 0.
        threads: most threads of a block that the compiler was told of, or None.
        block: threads in x, y and z that a block must have, where the compiler was told, or None.
        cluster: blocks that a cluster must have, where the compiler was told, or None.
        cubin: SHA-256 of the cubin's bytes, in hexadecimal.
        toolchain: who made it and who read it.
        jumps: of each indirect branch, its address and the addresses that it may go to.
    """

    name: str
    arch: str
    instructions: tuple[Instruction, ...]
    parameters: tuple[Parameter, ...]
    bank_offset: int
    threads: int | None
    cubin: str
    toolchain: Toolchain
    jumps: tuple[tuple[int, tuple[int, ...]], ...] = ()
    block: tuple[int, int, int] | None = None
    cluster: int | None = None
