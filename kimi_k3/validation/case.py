# SPDX-License-Identifier: Apache-2.0
"""One question to a candidate, and what the right answer is."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from kimi_k3.validation.candidate import Candidate


@dataclass(frozen=True)
class Case:
    """What a call is about; its content follows from it.

    Attributes:
        candidate: who is asked.
        rows: how many rows of the operands count.
        scalars: numbers by name.
        family: of the content, a name in the operator's schema.
        seed: of the content.
    """

    candidate: Candidate
    rows: int
    scalars: Mapping[str, int]
    family: str
    seed: int

    def __str__(self) -> str:
        """As findings name it."""
        numbers = "".join(f", {name} {value}" for name, value in self.scalars.items())
        return f"{self.rows} rows{numbers}, {self.family}, seed {self.seed}"

    def has(self, name: str) -> bool:
        """Whether the candidate has an operand of that name."""
        return self.candidate.operand(name) is not None

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of an operand that the candidate has."""
        operand = self.candidate.operand(name)
        if operand is None:
            raise KeyError(name)
        return operand.shape


@dataclass(frozen=True)
class Expected:
    """The right answer for one operand that is written.

    Attributes:
        value: of the operand's shape, float64; anything where it is not written.
        bound: of the same shape, how far a value may be from it.
        written: of the same shape, which values must be written; the others must stay.
    """

    value: torch.Tensor
    bound: torch.Tensor
    written: torch.Tensor


Content = dict[str, torch.Tensor]
"""Operands that are read, by name and in their own shapes; NaN where nothing may depend on it."""
