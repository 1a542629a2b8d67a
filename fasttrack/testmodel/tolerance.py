# SPDX-License-Identifier: Apache-2.0
"""Whether a tolerance lets more through than before: old value, new value, or not told."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fasttrack.testmodel.known import SMALLER_IS_LOOSER, TORCH_DEFAULTS
from fasttrack.testmodel.values import Either, Value

_SAME: Mapping[str, str] = {
    "rel": "rtol", "rel_tol": "rtol", "abs": "atol", "abs_tol": "atol", "delta": "atol",
}  # fmt: skip
"""Names of one dimension in different functions."""
Numbers = Mapping[str, float]
"""Condition to number."""


@dataclass(frozen=True)
class Loosened:
    """One dimension in which a check lets more through.

    Attributes:
        name: `rtol`, `at most`, ...
        old: the base's value, in words.
        new: the head's value, in words; empty when it is not told any more.
    """

    name: str
    old: str
    new: str


def by_dimension(tolerances: Mapping[str, Value]) -> dict[str, Value]:
    """Tolerances under one name for each dimension."""
    return {_SAME.get(name, name): value for name, value in tolerances.items()}


def loosened(
    base: Mapping[str, Value], head: Mapping[str, Value], *, depends: bool = False
) -> Iterator[Loosened]:
    """The dimensions in which `head` lets more through than `base`.

    Args:
        base: tolerances of the check at the base.
        head: tolerances of the same check at the head.
        depends: where a tolerance is absent, torch takes one by the operands' type.
    """
    old, new = by_dimension(base), by_dimension(head)
    for name in sorted(old.keys() | new.keys()):
        if name in old and name in new:
            yield from _compared(name, old[name], new[name])
        elif name in new:
            yield from _appeared(name, new[name], depends)
        elif depends:
            yield from _vanished(name, old[name])


def _compared(name: str, old: Value, new: Value) -> Iterator[Loosened]:
    before, after = numbers(old), numbers(new)
    if before is None:
        return
    if after is None:
        yield Loosened(name, _shown(before), "")
    elif _is_looser(name, before, after):
        yield Loosened(name, _shown(before), _shown(after))


def _appeared(name: str, new: Value, depends: bool) -> Iterator[Loosened]:
    """A tolerance where there was none: equality before, or torch's own choice."""
    after = numbers(new)
    if name in SMALLER_IS_LOOSER or name == "at most" or not after:
        return
    largest = TORCH_DEFAULTS.get(name, (0.0, 0.0))[1] if depends else 0.0
    if max(after.values()) > largest:
        yield Loosened(name, "torch's default" if depends else "exact", _shown(after))


def _vanished(name: str, old: Value) -> Iterator[Loosened]:
    """Torch chooses from now on: looser for certain only below its smallest default."""
    before = numbers(old)
    if before and name in TORCH_DEFAULTS and max(before.values()) < TORCH_DEFAULTS[name][0]:
        yield Loosened(name, _shown(before), "torch's default")


def _is_looser(name: str, before: Numbers, after: Numbers) -> bool:
    sign = -1.0 if name in SMALLER_IS_LOOSER else 1.0
    if before.keys() == after.keys():
        return any(sign * after[key] > sign * before[key] for key in before)
    lows = min(sign * v for v in after.values()), min(sign * v for v in before.values())
    highs = max(sign * v for v in after.values()), max(sign * v for v in before.values())
    return highs[0] > highs[1] or (highs[0] == highs[1] and lows[0] > lows[1])


def numbers(value: Value) -> Numbers | None:
    """A tolerance as numbers by condition; None when the text does not tell."""
    if isinstance(value, Either):
        found: dict[str, float] = {}
        for label, option in value.options:
            inner = numbers(option)
            if inner is None:
                return None
            found.update({f"{label} {key}".strip(): number for key, number in inner.items()})
        return found
    if isinstance(value, int | float) and value == value:  # noqa: PLR0124  (NaN)
        return {"": float(value)}
    return None


def _shown(found: Numbers) -> str:
    values = sorted(set(found.values()))
    text = ", ".join(f"{value:g}" for value in values[:4])
    return f"{text}, ..." if len(values) > 4 else text
