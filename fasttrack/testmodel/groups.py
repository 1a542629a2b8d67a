# SPDX-License-Identifier: Apache-2.0
"""The assertions of a test by the lines that lead to them: one for all the times it is met."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fasttrack.testmodel.events import Check, Place
from fasttrack.testmodel.folding import CannotTell, either
from fasttrack.testmodel.frames import source_text
from fasttrack.testmodel.strength import TRIVIAL
from fasttrack.testmodel.values import Either, Value

_COUNTED = re.compile(r"[\]})]#(\d+)")


@dataclass(frozen=True)
class Group:
    """One assertion of the text, with all the times it is met.

    Attributes:
        first: the strongest time.
        texts: words of what is compared, over all times.
        tolerances: all tolerances that it is met with.
        times: how often it runs; 0 when the text does not tell.
        capacity: assertions that it may stand for.
        dead: it fails no test.
    """

    first: Check
    texts: frozenset[str]
    tolerances: dict[str, Value]
    times: int
    capacity: int
    dead: str
    conditions: tuple[str, ...]

    @property
    def is_live(self) -> bool:
        """Whether its failure fails the test."""
        return not self.dead and self.first.strength > TRIVIAL


def groups_of(checks: Sequence[Check]) -> list[Group]:
    """Checks by the lines that lead to them, in order."""
    by_site: dict[tuple[Place, ...], list[Check]] = {}
    for check in checks:
        by_site.setdefault(check.site, []).append(check)
    return [_group(found) for found in by_site.values()]


def _group(found: Sequence[Check]) -> Group:
    live = [check for check in found if not check.dead] or found
    strongest = max(live, key=lambda check: check.strength)
    names = dict.fromkeys(name for check in live for name in check.tolerances)
    tolerances: dict[str, Value] = {}
    for name in names:
        values = [check.tolerances[name] for check in live if name in check.tolerances]
        tolerances[name] = values[0]
        if len(values) > 1:
            try:
                tolerances[name] = either((str(i), value) for i, value in enumerate(values))
            except CannotTell:
                tolerances[name] = None
    times = 0 if any(check.times == 0 for check in live) else sum(check.times for check in live)
    counted = [int(n) for n in _COUNTED.findall(strongest.text)]
    common = set(live[0].conditions).intersection(*(check.conditions for check in live))
    return Group(
        first=strongest,
        texts=frozenset(check.text for check in live),
        tolerances=tolerances,
        times=times,
        capacity=max([times or 64, *counted, *map(options_of, tolerances.values())]),
        dead=live[0].dead,
        conditions=tuple(sorted(common)),
    )


def options_of(tolerance: Value) -> int:
    """Assertions of several branches that one with a bound for each of them stands for."""
    return len(tolerance.options) if isinstance(tolerance, Either) else 1


def is_many(group: Group) -> bool:
    """Whether one assertion may stand for several: in a loop, or with a bound for each branch."""
    return max(group.times, *map(options_of, [*group.tolerances.values(), None])) > 1


def shown(group: Group) -> str:
    """An assertion in a few words, for a finding."""
    return f"`{source_text(group.first.node)}`"
