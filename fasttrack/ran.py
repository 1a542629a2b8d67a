# SPDX-License-Identifier: Apache-2.0
"""What running a change's code has shown, as data that rules judge.

Nothing here runs anything: `fasttrack.executed` does, and only where it is asked to. A part that
was not asked for is None, and the rules that would speak of it say nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Run = Literal["passed", "failed", "not-run"]
"""`failed` also where it could not be told."""
RUN_TIMEOUT_S = 600.0
"""Seconds that one run of a change's code may take, unless told otherwise."""


@dataclass(frozen=True)
class Unknown:
    """Something that a run was to show and did not.

    Attributes:
        path: repository path that it is about; empty for the whole part.
        reason: why, in words.
    """

    path: str
    reason: str


@dataclass(frozen=True)
class Difference:
    """Something outside the roots that differs after the head's code was imported.

    Attributes:
        path: the governed file after whose import it was first seen.
        what: the foreign thing, by a dotted name, such as `engine.ops.add`.
        how: what became of it, such as `is another function`.
    """

    path: str
    what: str
    how: str


@dataclass(frozen=True)
class Probe:
    """Import of the governed code.

    Attributes:
        differences: what head's code changes and base's does not.
        unknown: modules and trees of which nothing can be said.
        modules: how many modules were imported.
    """

    differences: tuple[Difference, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    modules: int = 0

    @property
    def run(self) -> Run:
        """What the verdict says of it."""
        if self.differences or self.unknown:
            return "failed"
        return "passed" if self.modules else "not-run"


@dataclass(frozen=True)
class Collection:
    """Tests that pytest collects, without running them.

    Attributes:
        base: test id to the marks that skip it or expect it to fail, at the target's tip.
        head: the same, in the judged tree.
        unknown: why one of the two could not be had.
    """

    base: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    head: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unknown: tuple[Unknown, ...] = ()

    @property
    def lost(self) -> tuple[str, ...]:
        """Ids that only the base has and no renamed test stands for."""
        return unmatched(tuple(self.base), tuple(self.head))

    @property
    def marked(self) -> Mapping[str, tuple[str, ...]]:
        """Id to the marks that only the head puts on it."""
        new = {id_: self._new_marks(id_) for id_ in self.base if id_ in self.head}
        return {id_: marks for id_, marks in new.items() if marks}

    def _new_marks(self, id_: str) -> tuple[str, ...]:
        return tuple(mark for mark in self.head[id_] if mark not in self.base[id_])

    @property
    def run(self) -> Run:
        """What the verdict says of it."""
        if self.unknown or self.lost or self.marked:
            return "failed"
        return "passed" if self.base or self.head else "not-run"


@dataclass(frozen=True)
class Failure:
    """A test of the target branch that fails over the change's code.

    Attributes:
        id: its id.
        path: its file.
        message: the last line that it failed with.
        contract: functions inside the roots that it uses and whose parameters changed.
    """

    id: str
    path: str
    message: str
    contract: tuple[str, ...] = ()


@dataclass(frozen=True)
class BaseTests:
    """The target branch's tests over the change's code.

    Attributes:
        failures: tests that fail there and pass over the target branch's own code.
        renamed: tests left out, because the change has them under another name.
        unknown: why some of it is not known.
        passed: how many passed.
    """

    failures: tuple[Failure, ...] = ()
    renamed: tuple[str, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    passed: int = 0

    @property
    def run(self) -> Run:
        """What the verdict says of it."""
        if self.failures or self.unknown:
            return "failed"
        return "passed" if self.passed or self.renamed else "not-run"


@dataclass(frozen=True)
class Executed:
    """All parts; None for one that was not asked for."""

    import_probe: Probe | None = None
    test_collection: Collection | None = None
    base_tests: BaseTests | None = None


NOTHING_RAN = Executed()


def unmatched(base: tuple[str, ...], head: tuple[str, ...]) -> tuple[str, ...]:
    """Ids of `base` for which `head` has neither the same nor one under another name.

    A test function that is gone is another one's old name if that one is new, has the same
    parameters, and either the file or the function's own name is the same. Several new functions
    may share the parameters of one old one, as a test that was split.
    """
    old, new = _by_function(base), _by_function(head)
    gained = {name: set(new[name]) for name in new if name not in old}
    left: list[str] = []
    for name, parameters in old.items():
        missing = [p for p in parameters if p not in new.get(name, {})]
        if name not in new:
            for other in [other for other in gained if _akin(name, other)]:
                found = gained[other] & set(missing)
                # All of the new one must come from the old one: else it is just another test.
                if found and found == gained[other]:
                    missing = [p for p in missing if p not in found]
                    del gained[other]
        left += [name + p for p in missing]
    return tuple(left)


def _by_function(ids: tuple[str, ...]) -> dict[str, dict[str, None]]:
    """Function to the parameters in brackets, in order."""
    found: dict[str, dict[str, None]] = {}
    for id_ in ids:
        name, bracket, rest = id_.partition("[")
        found.setdefault(name, {})[bracket + rest] = None
    return found


def _akin(old: str, new: str) -> bool:
    return (
        old.partition("::")[0] == new.partition("::")[0]
        or old.rpartition("::")[2] == (new.rpartition("::")[2])
    )
