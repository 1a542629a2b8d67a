# SPDX-License-Identifier: Apache-2.0
"""FT304: the scope admits no new point and claims no higher tier."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding, Level
from fasttrack.manifest.widening import widenings
from fasttrack.rules.base import Rule
from fasttrack.rules.manifest.edited import MAX_FINDINGS, edited, line_of
from fasttrack.rules.manifest.widening import PLACES


class WiderScope(Rule):
    """Points and tiers that evidence has to answer."""

    id = "FT304"
    slug = "wider-scope"
    title = "the scope stays or gets narrower"
    level = Level.NOTE
    refuses = (
        "Nothing. It notes each region of an edited manifest that admits a point, or claims a "
        "tier, that the target branch's scope does not, with one such point."
    )
    why = "A reader sees at once which configurations the owed evidence is about."
    blind = "Further points of the same region; `fasttrack scope diff` shows the regions."
    fix = "nothing, if the wider scope is meant; the evidence it owes is listed with the verdict"
    false_alarms = "not measured yet"

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
