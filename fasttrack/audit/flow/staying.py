# SPDX-License-Identifier: Apache-2.0
"""Which threads of a block surely stay where those past the end of the data leave.

`if (blockIdx.x * 128 + threadIdx.x >= n) return;`: where a thread leaves, all behind it do. So if
any thread of the block is still there, the first one is. What a name stands for is one number in
each thread for the whole launch, so it does not matter when they come to the condition.

`blockIdx.x * n + threadIdx.x` may be too large for its word in some threads of a block alone, which
then stay without the first. Whether it is can not be seen here: see `Facts.unwrapped`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np

from fasttrack.audit.flow.names import Names
from fasttrack.audit.flow.operands import Context
from fasttrack.audit.flow.threads import Threads, Vector, mask_of

_BITS = 32
_MOST = 1 << 16
"""The largest factor of a thread's index that is looked at."""
_SUMS = frozenset({"IADD", "IADD3", "VIADD"})
_PRODUCTS = frozenset({"IMAD", "IMAD.IADD", "IMAD.SHL", "IMAD.SHL.U32", "IMAD.U32"})
_OR = "LOP3.LUT 252"
"""Bits that are set in either of the first two words."""
_KNOWN = _SUMS | _PRODUCTS | {"LEA", "SHF.L.U32", _OR}


@dataclass(frozen=True)
class _Sum:
    """A word that is the sum of a number of the block and one of each thread.

    Attributes:
        lanes: the number of each thread.
        zeros: how many of the lowest bits of the block's number are zero.
        number: the word, if it is a known one.
    """

    lanes: Vector
    zeros: int
    number: int | None = None

    @property
    def uniform(self) -> bool:
        """Whether it is the same for the whole block."""
        return not self.lanes.any()

    @property
    def carries(self) -> bool:
        """Whether the order of the words may be another one than that of the threads' numbers."""
        return int(self.lanes.max()) >> min(self.zeros, _BITS - 1) != 0


def staying(context: Context, name: int, truth: bool) -> int:
    """Threads for which a condition is not of that truth, if it is not for any of their block."""
    names = context.names
    while names.keys[name][0] == "not":
        (name,), truth = names.keys[name][1:], not truth  # type: ignore[assignment]
    operation, *parts = names.keys[name]
    if operation not in ("LT True", "LT False"):
        return 0
    left, right = (_sum(names, context.threads, one) for one in parts)
    if left is None or right is None or left.uniform is right.uniform:
        return 0
    growing = right if left.uniform else left
    if growing.carries:
        context.carried = True
        if not context.unwrapped:
            return 0
    lanes = growing.lanes
    last = _leave_first(truth, below=growing is left)
    return mask_of(lanes == (lanes.max() if last else lanes.min()))


def _leave_first(truth: bool, *, below: bool) -> bool:
    """Whether the first threads leave before others: those `below` a number, or not above one."""
    return truth is below


def bounds(context: Context, ended: Mapping[int, bool]) -> Mapping[int, int]:
    """Of conditions that are decided for all who end at a point, who stays if any of a block does.

    Who is still there while they are decided otherwise for another thread can not have ended there.
    """
    uniform = context.names.uniform
    own = {name: truth for name, truth in ended.items() if not uniform[name]}
    found = {name: staying(context, name, truth) for name, truth in own.items()}
    return {name: mask for name, mask in found.items() if mask}


def _sum(names: Names, threads: Threads, part: object) -> _Sum | None:
    """An operand as a sum; None if it is none of those that are known here."""
    if isinstance(part, tuple):
        return _Sum(np.zeros(threads.count, np.uint64), _trailing(part[0]), part[0])
    if not isinstance(part, int):
        return None
    operation, *operands = names.keys[part]
    if operation == "SR_TID.X":
        return _Sum(threads.index % np.uint64(threads.block[0]), _BITS)
    found = None
    if operation in _KNOWN:
        some = [_sum(names, threads, one) for one in operands]
        known = [one for one in some if one is not None]
        found = _combined(str(operation), known) if len(known) == len(some) else None
    if found is None and names.uniform[part]:
        return _Sum(np.zeros(threads.count, np.uint64), 0)
    return found


def _combined(operation: str, parts: list[_Sum]) -> _Sum | None:
    if operation in _SUMS:
        return reduce(_plus, parts)
    if operation in _PRODUCTS and len(parts) == 3:
        product = _times(*parts[:2])
        return _plus(product, parts[2]) if product is not None else None
    if operation == "LEA" and len(parts) == 3:
        moved = _moved(parts[0], parts[2].number)
        return _plus(moved, parts[1]) if moved is not None else None
    if operation == "SHF.L.U32" and len(parts) == 3:
        return _moved(parts[0], parts[1].number)
    return _either(parts[0], parts[1]) if operation == _OR else None


def _plus(one: _Sum, other: _Sum) -> _Sum:
    return _Sum(one.lanes + other.lanes, min(one.zeros, other.zeros))


def _either(one: _Sum, other: _Sum) -> _Sum | None:
    """Bits of both, which is their sum if the one has none where the other has some."""
    block, own = (one, other) if one.uniform else (other, one)
    apart = block.uniform and own.zeros == _BITS and int(own.lanes.max()) >> block.zeros == 0
    return _plus(one, other) if apart else None


def _times(one: _Sum, other: _Sum) -> _Sum | None:
    if one.uniform and other.uniform:
        return _Sum(one.lanes, min(one.zeros + other.zeros, _BITS))
    grows, factor = (other, one) if one.uniform else (one, other)
    if not factor.uniform or factor.number is None or factor.number > _MOST:
        return None
    zeros = min(grows.zeros + factor.zeros, _BITS)
    lanes = grows.lanes * np.uint64(factor.number)
    return _Sum(lanes, zeros) if int(lanes.max()) >> _BITS == 0 else None


def _moved(one: _Sum, by: int | None) -> _Sum | None:
    if by is None or by >= _BITS:
        return None
    return _times(one, _Sum(np.zeros_like(one.lanes), by, 1 << by))


def _trailing(number: int) -> int:
    """How many of the lowest bits of a word are zero."""
    return (number & -number).bit_length() - 1 if number else _BITS
