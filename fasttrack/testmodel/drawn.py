# SPDX-License-Identifier: Apache-2.0
"""How many values a strategy of hypothesis can draw, where its words tell that they are few."""

import re

from fasttrack.testmodel.values import Value, words

UNBOUNDED = 2**62
"""More values than a test draws; also of a strategy that is not understood."""
_STRATEGY = re.compile(r"^(?:[\w.]*\.)?(\w+)\((.*)\)$")
_INTEGERS = re.compile(
    r"^(?:min_value=)?(-?\d+), (?:max_value=)?(-?\d+)$|^max_value=(-?\d+), min_value=(-?\d+)$"
)
_ONE_NUMBER = re.compile(r"^(?:min_value=)?(-?[\d.]+), (?:max_value=)?\1$")
_LISTED = re.compile(r"[\])]#(\d+)$")


def size_of(strategy: Value) -> int:
    """The number of values of a strategy."""
    found = _STRATEGY.match(words(strategy))
    match found.groups() if found else ("", ""):
        case "just" | "none" | "nothing", _:
            return 1
        case "booleans", _:
            return 2
        case "floats", given if _ONE_NUMBER.match(given):
            return 1
        case "sampled_from", given if listed := _LISTED.search(given):
            return int(listed[1])
        case "integers", given if bounds := _INTEGERS.match(given):
            low, high = (bounds[1], bounds[2]) if bounds[1] else (bounds[4], bounds[3])
            return max(int(high) - int(low) + 1, 1)
        case _:
            return UNBOUNDED


def shown(count: int) -> str:
    """A number of values or repetitions in words."""
    return "any" if count >= UNBOUNDED else str(count)
