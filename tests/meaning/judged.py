# SPDX-License-Identifier: Apache-2.0
"""Judges a cell through the rules, over a change that lies in memory.

`MemoryChange` is the real `Change` with files in a dictionary where git would be; a sample of cells
is judged through git as well, and a test compares the answers.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from functools import cache
from pathlib import Path

from fasttrack.case import Case, Config, ManifestSet
from fasttrack.change.added import LineDiffs
from fasttrack.change.change import Change
from fasttrack.change.objects import Objects
from fasttrack.change.read import read_change
from fasttrack.change.tree import Tree
from fasttrack.config import read_base_manifests, read_config, read_head_manifests
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding, Level
from fasttrack.rules import RULES
from fasttrack.rules.engine import run_rules
from fasttrack.testing import Repo

from .corpus import Cell, Files, Made, made, project

AS_OF = date(2026, 11, 29)
MEANING = tuple(rule for rule in RULES if rule.id[:3] in {"FT2", "FT4"})
"""The rules that the corpus is about."""


class MemoryObjects(Objects):
    """Blobs by id, held in a dictionary."""

    def __init__(self, blobs: Mapping[str, bytes]) -> None:
        self._blobs = blobs

    def load_sizes(self, oids: Iterable[str]) -> None:
        """Nothing is far away."""

    def has(self, oid: str) -> bool:
        return oid in self._blobs

    def size(self, oid: str) -> int:
        return len(self._blobs[oid])

    def read(self, oid: str, limit: int, ahead: Iterable[str] = ()) -> bytes:
        if len(self._blobs[oid]) > limit:
            raise FactUnavailable(f"object {oid} has more than {limit:,} bytes")
        return self._blobs[oid]


class MemoryChange(Change):
    """A change between two sets of files, on a target branch that has not moved."""

    def __init__(self, base: Files, head: Files) -> None:
        blobs = {_oid(text): text.encode() for files in (base, head) for text in files.values()}
        self._objects = MemoryObjects(blobs)
        before, after = _tree(base), _tree(head)
        self.merge_bases = ("0" * 40,)
        self.base_tip = self.merge_base = "0" * 40
        self.head = "1" * 40
        self.base_tree = self._merge_base_tree = "2" * 40
        self.head_tree = "3" * 40
        self.entries = before.changes_to(after)
        self._by_path = {entry.path: entry for entry in self.entries}
        self._diffs = LineDiffs(self._objects, self.entries)
        self.__dict__ |= {"base": before, "head_files": after, "judged": after}

    @property
    def judged_tree(self) -> str:
        return self.head_tree

    @property
    def merges_from_its_start(self) -> bool:
        return True

    def close(self) -> None:
        """There is no git to end."""


def case_of(change: Made) -> Case:
    """The facts of a change of the host project that asks for the fast track."""
    config, manifests = _settings()
    files = MemoryChange(change.base, change.head)
    return Case(files, config, manifests, manifests, AS_OF, labelled=True)


def findings(case: Case, *, off: str = "") -> tuple[Finding, ...]:
    """What the rules of the two families say, one of them switched off."""
    return run_rules([rule for rule in MEANING if rule.id != off], case)


def alarms(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings that hold a change up."""
    return tuple(f for f in found if f.level is not Level.NOTE)


def answers(cell: Cell, found: Iterable[Finding]) -> frozenset[str]:
    """Ids of the rules that caught a cell: one that may answer for it, on a file that changed."""
    changed = set(made(cell).change)
    return frozenset(
        f.rule for f in alarms(found) if f.rule in cell.effect.rules and f.path in changed
    )


@contextmanager
def through_git(change: Made, where: Path) -> Iterator[Case]:
    """The same facts, from a real repository."""
    repo = Repo(where, bare=True)
    start = repo.commit("main", change.base)
    repo.commit("topic", change.change, parent=start)
    with read_change(where, target="main", head="topic") as read:
        config = read_config(read, folder=None, policy_file=None)
        base, head = read_base_manifests(read, config), read_head_manifests(read, config)
        yield Case(read, config, base, head, AS_OF, labelled=True)


@cache
def _settings() -> tuple[Config, ManifestSet]:
    """Policy and manifests of the host project; no cell changes them."""
    still = MemoryChange(project(), project())
    config = read_config(still, folder=None, policy_file=None)
    return config, read_base_manifests(still, config)


def _tree(files: Files) -> Tree:
    whole = {path: f"100644 blob {_oid(text)}" for path, text in sorted(files.items())}
    return Tree(lambda: whole)


@cache
def _oid(text: str) -> str:
    """The id that git gives to a file with this text."""
    data = text.encode()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
