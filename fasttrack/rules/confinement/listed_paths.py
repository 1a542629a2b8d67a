# SPDX-License-Identifier: Apache-2.0
"""The shape of a rule that reports every change to files with certain names.

Names are compared by `fasttrack.policy.classes.fold`: on a file system that folds case, a tool
that looks for `AGENTS.md` also reads `agents.MD`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.finding import Finding
from fasttrack.globs import matches
from fasttrack.policy.classes import fold
from fasttrack.rules.base import EntryRule


@dataclass(frozen=True)
class Listing:
    """A set of paths, written in folded spelling (for ASCII: lower case).

    Attributes:
        names: last segments, at any depth.
        name_patterns: patterns of last segments, at any depth.
        folders: folders, at any depth; everything below one is meant.
        paths: patterns of whole paths.
    """

    names: frozenset[str] = frozenset()
    name_patterns: tuple[str, ...] = ()
    folders: frozenset[str] = frozenset()
    paths: tuple[str, ...] = ()

    def holds(self, path: str) -> bool:
        """Whether `path`, in whatever spelling, is meant."""
        *parents, name = fold(path).split("/")
        return (
            name in self.names
            or not self.folders.isdisjoint(parents)
            or any(matches(pattern, name) for pattern in self.name_patterns)
            or any(matches(pattern, fold(path)) for pattern in self.paths)
        )


class ListedPaths(EntryRule):
    """Reports each changed path of its listing."""

    listing: ClassVar[Listing]
    """The paths that it reports."""
    noun: ClassVar[str]
    """What such a path is, with its article."""

    def concerns(self, case: Case, path: str) -> bool:
        """Whether the rule reports a change to `path`; its listing decides unless overridden."""
        del case
        return self.listing.holds(path)

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Reports one path that is listed."""
        if self.concerns(case, entry.path):
            yield self.finding(
                path=entry.path,
                saw=f"{self.noun}, {what_happened(entry)}",
                want="a change that leaves such files alone",
                content=f"{entry.old.oid} {entry.new.oid}",
            )


def what_happened(entry: Entry) -> str:
    """`added`, `deleted` or `changed`."""
    if entry.added:
        return "added"
    return "deleted" if entry.deleted else "changed"
