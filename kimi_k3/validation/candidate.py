# SPDX-License-Identifier: Apache-2.0
"""What is judged, as data: the judge imports nothing of a candidate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kimi_k3.decode.kernels.shapes import Operand, Role


@dataclass(frozen=True)
class KernelIdentity:
    """A kernel that must be seen to run.

    Attributes:
        name: its symbol.
        digest: SHA-256 of its machine code, or of its source where it is interpreted.
    """

    name: str
    digest: str


@dataclass(frozen=True)
class MachineCode:
    """What the static gate reads.

    Attributes:
        name: how messages name it.
        data: a cubin, or PTX.
        contract: the text of its contract, YAML.
        digest: SHA-256 that a build says the code has; empty where nothing is built ahead.
    """

    name: str
    data: bytes
    contract: bytes
    digest: str = ""


@dataclass(frozen=True)
class Candidate:
    """One variant of a kernel, or a stand-in for one.

    Attributes:
        name: unique among those that are judged together.
        operator: what it computes, by its name in `operators.OPERATORS`.
        entry: `module:function` that makes the program in the candidate's process.
        arguments: of that function, as JSON has them.
        operands: its parameters in order, rows first where they have rows.
        rows: fewest and most rows that it serves.
        constants: what it was compiled for beside shapes, such as `eps`.
        kernels: what a call must launch, and nothing else.
        device: `cpu` or `cuda`.
        classes: operand to the class that its contract gives it, where there is one.
        code: its machine code, or None where there is none to read.
        sources: files that it is made of.
    """

    name: str
    operator: str
    entry: str
    arguments: Mapping[str, Any]
    operands: tuple[Operand, ...]
    rows: tuple[int, int]
    constants: Mapping[str, float]
    kernels: tuple[KernelIdentity, ...]
    device: str
    classes: Mapping[str, str] = field(default_factory=dict)
    code: MachineCode | None = None
    sources: Sequence[str] = ()

    @property
    def memory(self) -> tuple[Operand, ...]:
        """Operands that are memory."""
        return tuple(one for one in self.operands if one.role is not Role.SCALAR)

    @property
    def scalars(self) -> tuple[Operand, ...]:
        """Operands that are numbers."""
        return tuple(one for one in self.operands if one.role is Role.SCALAR)

    def operand(self, name: str) -> Operand | None:
        """The operand of that name, or None."""
        return next((one for one in self.operands if one.name == name), None)
