# SPDX-License-Identifier: Apache-2.0
"""FT304: the scope admits no new point and claims no higher tier."""

from collections.abc import Iterator
from dataclasses import replace

from fasttrack.case import Case
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding, Level
from fasttrack.manifest.model import Manifest, Region
from fasttrack.manifest.unvisited import unvisited_values
from fasttrack.manifest.widening import widenings
from fasttrack.rules.base import Rule
from fasttrack.rules.manifest.edited import MAX_FINDINGS, Subject, edited, line_of
from fasttrack.rules.manifest.widening import PLACES
from fasttrack.vocabulary import Kind


class WiderScope(Rule):
    """Points and tiers that evidence has to answer."""

    id = "FT304"
    slug = "wider-scope"
    title = "the scope stays or gets narrower"
    level = Level.NOTE
    refuses = (
        "It notes each region of an edited manifest that admits a point, or claims a tier, that "
        "the target branch's scope does not, with one such point. For an ordinary review are only "
        "new values, in regions that owe kernel tests, of an axis that no unit has."
    )
    why = (
        "A reader sees at once which configurations the owed evidence is about. No test visits an "
        "axis that no unit has, so that its new values do not matter is for people to judge."
    )
    blind = "Further points of the same region; `fasttrack scope diff` shows the regions."
    fix = (
        "nothing, if the wider scope is meant and only noted; the evidence it owes is listed with "
        "the verdict. Else add the axis to the units that it may change"
    )

    def check(self, case: Case) -> Iterator[Finding]:
        """One note per wider region; a new manifest is FT303's."""
        for subject in edited(case):
            if subject.base is None:
                continue
            try:
                found = [w for w in widenings(subject.base, subject.head) if not w.needs_human]
            except FactUnavailable as reason:
                yield self.could_not_tell(reason, subject.path)
                continue
            for widening in found[:MAX_FINDINGS]:
                yield self.finding(
                    path=subject.path,
                    line=line_of(case, subject.path, PLACES[widening.kind]),
                    saw=widening.saw,
                    want=widening.want,
                )
            yield from self._unvisited(case, subject, subject.base)

    def _unvisited(self, case: Case, subject: Subject, base: Manifest) -> Iterator[Finding]:
        before, after = _tested(case, base), _tested(case, subject.head)
        for axis, values in unvisited_values(before, after, subject.head.units):
            shown = ", ".join(map(str, values))
            found = self.finding(
                path=subject.path,
                line=line_of(case, subject.path, ("scope",)),
                saw=f"{axis.value} {shown}, new on an axis that no unit has: no test visits it",
                want=f"a unit with the axis '{axis.value}'",
            )
            yield replace(found, level=Level.ROUTE)


def _tested(case: Case, manifest: Manifest) -> list[Region]:
    """The regions that owe kernel tests."""
    return [r for r in manifest.scope if Kind.KERNEL_TEST in case.policy.tiers.get(r.tier, ())]
