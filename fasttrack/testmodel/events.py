# SPDX-License-Identifier: Apache-2.0
"""What a test does that counts, in the order in which following it meets it."""

import ast
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from fasttrack.testmodel.values import NOTHING_CUT, Cuts, Value

Place = tuple[str, int]
"""Path and line."""
IN_A_THREAD = "in a thread, whose failure fails no test"
"""Why an assertion may be dead; whoever starts the thread may ask for its failure."""
CHECKS_LIMIT = 4000
"""Assertions of one test that are kept; a test with more is not decided."""


@dataclass(frozen=True)
class Check:
    """One assertion that was met.

    Attributes:
        kind: `assert`, or the name of the function that asserts.
        text: canonical words of what is compared.
        node: its syntax.
        source: the assertion as it is written, without layout.
        strength: how much it says, see `strength`.
        roots: names in what is compared: a check with the same ones speaks of the same thing.
        tolerances: dimension such as `rtol` to its value; absent when the function's own counts.
        site: the lines that led there, from the test's body on.
        times: how often the loops around it run it, where they tell.
        dead: why its failure fails no test; empty for a live one.
        conditions: what must hold, and is not told, for it to be reached.
        cuts: what was cut off both sides of the comparison.
    """

    kind: str
    text: str
    node: ast.AST
    source: str
    strength: int
    roots: frozenset[str]
    tolerances: Mapping[str, Value]
    site: tuple[Place, ...]
    times: int = 1
    dead: str = ""
    conditions: tuple[str, ...] = ()
    cuts: Cuts = NOTHING_CUT

    @property
    def place(self) -> Place:
        """Where it is written."""
        return self.site[-1]


@dataclass(frozen=True)
class Skip:
    """A call or mark that keeps a test from running or from failing.

    Attributes:
        how: `skip`, `xfail` or what else it is.
        condition: canonical words; empty when it always holds.
        place: where it is.
    """

    how: str
    condition: str
    place: Place


@dataclass(frozen=True)
class Seed:
    """A generator of random numbers that is seeded."""

    function: str
    value: Value
    place: Place


@dataclass(frozen=True)
class Loop:
    """A loop that repeats a check, or does nothing but repeat calls."""

    what: str
    count: int
    place: Place


@dataclass(frozen=True)
class Replaced:
    """An object of another module that a test puts something in the place of."""

    target: str
    how: str
    place: Place


@dataclass
class Trace:
    """The events of one test, while it is followed."""

    checks: list[Check] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    seeds: list[Seed] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    replaced: list[Replaced] = field(default_factory=list)
    site: list[Place] = field(default_factory=list)
    times: int = 1
    dead: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    quiet: int = 0
    complete: bool = True

    @contextmanager
    def at(self, place: Place) -> Iterator[None]:
        """While something at a place is followed."""
        self.site.append(place)
        try:
            yield
        finally:
            self.site.pop()

    @contextmanager
    def dying(self, why: str) -> Iterator[None]:
        """While a failure would fail no test; nothing changes when `why` is empty."""
        if why:
            self.dead.append(why)
        try:
            yield
        finally:
            if why:
                self.dead.pop()

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """While a condition that the text does not tell must hold."""
        if condition:
            self.conditions.append(condition)
        try:
            yield
        finally:
            if condition:
                self.conditions.pop()
