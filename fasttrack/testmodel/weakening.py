# SPDX-License-Identifier: Apache-2.0
"""One thing that a change takes from the tests, as data."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum


class Kind(StrEnum):
    """What is taken; each is one rule's matter."""

    LOST = "lost"
    SKIPPED = "skipped"
    PARAMETERS = "parameters"
    ASSERTION = "assertion"
    TRIVIAL = "trivial"
    TOLERANCE = "tolerance"
    SEED = "seed"
    ITERATIONS = "iterations"
    EVALUATION = "evaluation"
    MOCK = "mock"
    UNTOLD = "untold"


_TEST = re.compile(r"test `([^`]*)`")


@dataclass(frozen=True)
class Weakening:
    """One thing that a change takes from the tests.

    Attributes:
        kind: whose matter it is.
        path: file to look at: after the merge, or the target branch's when it is gone.
        line: its line; 0 for the whole file.
        saw: what was and what is.
        want: what would pass.
        sure: nothing in the text explains it in another way.
        named: a manifest names the test.
    """

    kind: Kind
    path: str
    line: int
    saw: str
    want: str
    sure: bool = False
    named: bool = False

    @classmethod
    def untold(cls, path: str, saw: str, line: int = 0) -> "Weakening":
        """What can not be told any more."""
        want = "tests whose parameters and tolerances can be read"
        return cls(Kind.UNTOLD, path, line, saw, want)


def gathered(found: Iterable[Weakening]) -> tuple[Weakening, ...]:
    """One for all tests of a file that the same is taken from, with their number."""
    groups: dict[Weakening, list[Weakening]] = {}
    for one in found:
        same = replace(one, saw=_TEST.sub("test", one.saw, count=1), line=0)
        groups.setdefault(same, []).append(one)
    return tuple(
        first if not more else replace(first, saw=_with(first.saw, len(more)))
        for first, *more in groups.values()
    )


def _with(saw: str, more: int) -> str:
    return _TEST.sub(lambda test: f"{test[0]} (and {more} more)", saw, count=1)
