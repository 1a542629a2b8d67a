# SPDX-License-Identifier: Apache-2.0
"""Which manifests a change is to blame for, and the shape of the rules that judge them.

A rule of this family reports what the change brings. What the target branch's manifest already
says, judged under the same policy, is not reported again: otherwise nobody could suspend a path
whose manifest an upgraded policy has left behind.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fasttrack import strict_yaml
from fasttrack.case import Case
from fasttrack.change.tree import Tree
from fasttrack.config import judged_or_head
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding
from fasttrack.manifest.consistency import Fault, Loc
from fasttrack.manifest.model import Manifest
from fasttrack.rules.base import Rule

MAX_FINDINGS = 20
"""Findings of one rule on one manifest; the rest is counted, as nobody reads more."""


@dataclass(frozen=True)
class Subject:
    """One manifest that a rule looks at.

    Attributes:
        path: its repository path.
        base: the manifest at the target branch's tip; None when there is none of that path.
        head: the manifest after the merge.
    """

    path: str
    base: Manifest | None
    head: Manifest

    @property
    def edited(self) -> bool:
        """Whether the two differ in more than comments and layout."""
        return self.base != self.head


def edited(case: Case) -> Iterator[Subject]:
    """The manifests that the change adds or edits, in the order of their paths."""
    return (s for s in subjects(case) if s.edited and case.change.entry(s.path) is not None)


def subjects(case: Case) -> Iterator[Subject]:
    """All manifests after the merge that parse."""
    for path, manifest in case.head.valid.items():
        yield Subject(path, case.base.valid.get(path), manifest)


class ManifestRule(Rule):
    """A rule on what manifests say: reports the faults of the head's that the base's lacks."""

    @abstractmethod
    def faults(self, case: Case, manifest: Manifest, tree: Tree) -> Iterator[Fault]:
        """What is wrong with a manifest beside the files of `tree`.

        Two faults are the same when their `saw` is.
        """

    def subjects(self, case: Case) -> Iterator[Subject]:
        """The manifests that the rule looks at; those that the change edits unless overridden."""
        return edited(case)

    def check(self, case: Case) -> Iterator[Finding]:
        """Compares the faults of both sides, manifest by manifest."""
        for subject in self.subjects(case):
            try:
                yield from self.report(case, subject.path, self._new_faults(case, subject))
            except FactUnavailable as reason:
                yield self.could_not_tell(reason, subject.path)

    def report(self, case: Case, path: str, faults: list[Fault]) -> Iterator[Finding]:
        """Findings at the lines of a manifest, at most `MAX_FINDINGS`."""
        document = _document(case, path) if faults else None
        for fault in faults[:MAX_FINDINGS]:
            line = document.mark(fault.loc, key=True)[0] if document else 0
            yield self.finding(path=path, line=line, saw=fault.saw, want=fault.want, fix=fault.fix)
        if len(faults) > MAX_FINDINGS:
            saw = f"{len(faults) - MAX_FINDINGS} more findings of this rule"
            yield self.finding(path=path, saw=saw, want="none")

    def _new_faults(self, case: Case, subject: Subject) -> list[Fault]:
        before: set[str] = set()
        if subject.base is not None:
            before = {f.saw for f in self.faults(case, subject.base, case.change.base)}
        now = self.faults(case, subject.head, judged_or_head(case.change))
        return [fault for fault in now if fault.saw not in before]


def first_of(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"`{names[0]}`{more}"


def line_of(case: Case, path: str, loc: Loc) -> int:
    """The line of a field of a manifest after the merge; 0 when it can not be told."""
    document = _document(case, path)
    return document.mark(loc, key=True)[0] if document else 0


def _document(case: Case, path: str) -> strict_yaml.Document | None:
    side = judged_or_head(case.change).get(path)
    return None if side is None else strict_yaml.parse(case.change.blob(side), path)
