# SPDX-License-Identifier: Apache-2.0
"""FT129: no commit of a change leaves around the code what neither end of the change has."""

from collections.abc import Iterator, Mapping

from fasttrack.case import Case
from fasttrack.change.passed import Passed
from fasttrack.change.tree import ABSENT, Entry, Side
from fasttrack.finding import Finding, Level
from fasttrack.policy.model import PathClass
from fasttrack.rules.base import Rule


class PassingState(Rule):
    """Files that a commit of the change has otherwise than both ends of the change."""

    id = "FT129"
    slug = "passing-state"
    title = "no commit on the way has what neither end of the change has"
    level = Level.ROUTE
    refuses = (
        "A commit of a change, other than its last, after which a file outside the manifests' "
        "roots is neither as at the merge base nor as at the head: edited twice, or edited and "
        "taken back. Tests, which digests hold, prose, evidence and configuration are passed "
        "over; merging the target branch in is none of it."
    )
    why = (
        "Where changes land by a fast-forward or a rebase, each of their commits was the target "
        "branch, and a run may start from it. A check that is lax in one commit and strict in the "
        "next shows in no difference, and what is measured in between passes it."
    )
    blind = (
        "Commits that mix one file of the merge base with another one of the head; files in the "
        "roots of any manifest, also where they are around the code of another one; and commits of "
        "ordinary changes, which no rule looks at. Projects that only merge or squash lose nothing "
        "by the level `note`."
    )
    fix = "squash the commits into one; evidence stays valid, as it is bound to content"

    def check(self, case: Case) -> Iterator[Finding]:
        """Reports each path once, with the oldest of the commits."""
        found: dict[str, dict[str, Side]] = {}
        for one in _counting(case):  # the newest first
            if one.entry.new not in _ends(case, one.entry):
                found.setdefault(one.entry.path, {})[one.commit] = one.entry.new
        for path, states in found.items():
            yield self._state(path, states)

    def _state(self, path: str, states: Mapping[str, Side]) -> Finding:
        *later, first = states
        more = f", and {len(later)} more" if later else ""
        had = "what neither end of the change has" if states[first].present else "no such file"
        return self.finding(
            path=path,
            saw=f"commit {first[:12]} has {had}{more}",
            want="in each commit the file of the merge base, or that of the head",
            content=" ".join(sorted(f"{side.mode} {side.oid}" for side in states.values())),
        )


def _counting(case: Case) -> Iterator[Passed]:
    """What commits did that could matter to a run which starts from one of them."""
    roots = [root for manifest in case.head.valid.values() for root in manifest.code.roots]
    passed = [*case.change.passed()] if roots else []
    if passed:
        # What knows of evidence is slow to import.
        from fasttrack.evidence.counted import Counted  # noqa: PLC0415
        from fasttrack.evidence.unit_paths import unbound_paths  # noqa: PLC0415

        counted = Counted(roots, unbound_paths(case.config.folder))
        yield from (
            one
            for one in passed
            if counted.counts(one.entry) and case.path_class(one.entry.path) is not PathClass.TESTS
        )


def _ends(case: Case, entry: Entry) -> tuple[Side, ...]:
    """What is at a path at both ends of the change."""
    whole = case.change.entry(entry.path)
    if whole is not None:
        return whole.old, whole.new
    return (case.change.head_files.get(entry.path) or ABSENT,)
