# SPDX-License-Identifier: Apache-2.0
"""The parameters of a function by the text of its head."""

import re
from dataclasses import dataclass

_NESTED = re.compile(r"\([^()\[\]{}]*\)|\[[^()\[\]{}]*\]|\{[^()\[\]{}]*\}")
_BRACKET = re.compile(r"[()\[\]{}]")
_PARAMETER = re.compile(r"\s*(\**)([A-Za-z_]\w*)?")
_DEPTH = 12
"""Brackets in brackets of a head that are told apart."""
_RECEIVERS = frozenset({"self", "cls"})


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of one function, without `self` and `cls`.

    Attributes:
        names: all of them.
        places: how many of these are given by their place.
        rest: the one that takes all other values by place; empty for none.
        keywords: the one that takes all other keywords; empty for none.
    """

    names: tuple[str, ...]
    places: int
    rest: str
    keywords: str

    def taking(self, keyword: str, index: int) -> tuple[str, ...]:
        """The parameters that may take an argument.

        Args:
            keyword: the keyword that it is given by; empty for none.
            index: its number among those given by their place; negative where nobody knows.
        """
        if keyword in self.names:
            return (keyword,)
        if keyword:
            return (self.keywords,) if self.keywords else ()
        if index < 0:
            return self.names
        if index < self.places:
            return (self.names[index],)
        return (self.rest,) if self.rest else ()


def parameters_in(head: str) -> Parameters:
    """The parameters of a function, by the text from `def` to the colon."""
    inside = head[head.find("(") + 1 : _end(head)]
    for _ in range(_DEPTH):
        if not any(sign in inside for sign in "([{"):
            break
        inside = _NESTED.sub("", inside)
    names: list[str] = []
    places, rest, keywords = -1, "", ""
    for part in inside.split(","):
        found = _PARAMETER.match(part)
        stars, name = (found[1], found[2] or "") if found else ("", "")
        if stars and places < 0:
            places = len(names)
        rest = name if stars == "*" else rest
        keywords = name if stars == "**" else keywords
        if name and name not in _RECEIVERS:
            names.append(name)
    return Parameters(tuple(names), len(names) if places < 0 else places, rest, keywords)


def _end(head: str) -> int:
    """Where the bracket closes that opens first."""
    depth = 0
    for sign in _BRACKET.finditer(head):
        depth += 1 if sign[0] in "([{" else -1
        if not depth:
            return sign.start()
    return len(head)
