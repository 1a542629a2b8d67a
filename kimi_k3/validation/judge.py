# SPDX-License-Identifier: Apache-2.0
"""Compares the bytes after a call with those before it, and with the right answer.

Nothing is compared loosely: every value that must be written is within its own bound, every other
byte of the memory is what it was. A NaN is within no bound.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import torch

from kimi_k3.decode.kernels.shapes import Role
from kimi_k3.validation.case import Expected
from kimi_k3.validation.memory import Layout, Place, between
from kimi_k3.validation.operators.base import LEAST_NORMAL

WRITABLE = {Role.OUT, Role.INOUT, Role.MAILBOX}
FREE = {Role.WORKSPACE}


class Kind(StrEnum):
    """What is wrong with the bytes."""

    VALUE = "value"
    """Written, and too far from the answer."""
    NOT_A_NUMBER = "not-a-number"
    """Written, and no finite number."""
    UNWRITTEN = "unwritten"
    """Still the poison from before the call."""
    INPUT = "input"
    """An operand changed that is only read."""
    STRAY = "stray"
    """A row, column or slot of an output changed that this call has nothing to do with."""
    RED_ZONE = "red-zone"
    """Bytes changed that belong to no operand."""


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong.

    Attributes:
        kind: what.
        operand: where, or empty for memory between operands.
        saw: how much, and where first.
    """

    kind: Kind
    operand: str
    saw: str

    def __str__(self) -> str:
        """As findings tell it."""
        return f"{self.kind}{f' of {self.operand}' if self.operand else ''}: {self.saw}"


@dataclass(frozen=True)
class Judged:
    """What came of a call.

    Attributes:
        faults: what is wrong; empty when nothing is.
        worst: operand to the largest error in units of its bound.
        answers: operand to its values after the call, float64; only what is written.
        bits: operand to what was written, bit for bit.
    """

    faults: tuple[Fault, ...]
    worst: Mapping[str, float]
    answers: Mapping[str, torch.Tensor]
    bits: Mapping[str, torch.Tensor]


def judged(
    layout: Layout,
    before: torch.Tensor,
    after: torch.Tensor,
    expected: Mapping[str, Expected],
) -> Judged:
    """Compares two images.

    Args:
        layout: of the call.
        before: the image that was written before it.
        after: the image that was read after it.
        expected: operand to the right answer.
    """
    faults: list[Fault] = []
    worst, answers, bits = {}, {}, {}
    for name, place in layout.items():
        role = place.operand.role
        changed = place.bits(before) != place.bits(after)
        if role in WRITABLE:
            right = expected[name]
            faults += _strays(name, changed & ~right.written)
            faults += _unwritten(name, role, right.written & ~changed, right)
            off, found = _off(place.view(after), right)
            faults += found_faults(name, off, found)
            worst[name] = float(off.max()) if off.numel() else 0.0
            answers[name] = place.view(after)[right.written].double()
            bits[name] = place.bits(after)[right.written].clone()
        elif role not in FREE and bool(changed.any()):
            faults.append(Fault(Kind.INPUT, name, _where(changed)))
    return Judged(tuple(faults), worst, answers, bits)


def strayed(before: torch.Tensor, after: torch.Tensor, places: list[Place]) -> tuple[Fault, ...]:
    """Bytes that changed although they belong to no operand of any call.

    Args:
        before: the image that was written.
        after: the image that was read.
        places: operands of all calls that share the memory.
    """
    changed = between(before, after, places)
    return (Fault(Kind.RED_ZONE, "", _where(changed)),) if bool(changed.any()) else ()


def found_faults(name: str, off: torch.Tensor, values: torch.Tensor) -> list[Fault]:
    """Faults of the values that were written, from how many bounds they are off."""
    bad = ~values.isfinite()
    if bool(bad.any()):
        return [Fault(Kind.NOT_A_NUMBER, name, f"{int(bad.sum())} of {bad.numel()}")]
    beyond = off > 1
    if not bool(beyond.any()):
        return []
    at = int(off.argmax())
    saw = f"{int(beyond.sum())} of {off.numel()}, {float(off[at]):.3g} times the bound at {at}"
    return [Fault(Kind.VALUE, name, saw)]


def _off(after: torch.Tensor, right: Expected) -> tuple[torch.Tensor, torch.Tensor]:
    """Errors in units of their bounds, and the values, where they must be written."""
    values = after[right.written].double()
    error = (values - right.value[right.written]).abs()
    bound = right.bound[right.written].clamp(min=LEAST_NORMAL)
    return (error / bound).nan_to_num(nan=torch.inf), values


def _unwritten(name: str, role: Role, same: torch.Tensor, right: Expected) -> list[Fault]:
    # What is read and written may rightly stay as it was.
    if role is Role.INOUT or not bool(same.any()):
        return []
    return [Fault(Kind.UNWRITTEN, name, f"{_where(same)} of {int(right.written.sum())}")]


def _strays(name: str, changed: torch.Tensor) -> list[Fault]:
    return [Fault(Kind.STRAY, name, _where(changed))] if bool(changed.any()) else []


def _where(changed: torch.Tensor) -> str:
    first = changed.nonzero()[0].tolist()
    at = first[0] if len(first) == 1 else first
    return f"{int(changed.sum())} changed, at {at} first"
