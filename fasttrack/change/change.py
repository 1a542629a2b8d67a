# SPDX-License-Identifier: Apache-2.0
"""The record of one change: read-only facts, looked up when asked, cached and bounded."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import Self

from fasttrack.change.added import BLOB_LIMIT, AddedLine, LineDiffs, decode
from fasttrack.change.former import FormerSides, PastUnavailable, Step
from fasttrack.change.git import Git
from fasttrack.change.history import History
from fasttrack.change.judged import Merge, merge
from fasttrack.change.objects import Objects
from fasttrack.change.passed import Passed, commits_between, passed
from fasttrack.change.tree import ABSENT, Entry, Side, Tree, changed_paths, path_bytes
from fasttrack.errors import FactUnavailable, InputError


class Change:
    """What lies between a merge base and a head, and what the head becomes on the target branch.

    Close it, or use it in a `with` block: git processes and temporary files belong to it.

    Attributes:
        base_tip: commit at the tip of the target branch; policy and manifests are read from it.
        merge_bases: all best common ancestors of target branch and head, sorted by id.
        merge_base: the commit at which the change starts: the first of `merge_bases`.
        head: the commit that is judged; made up when the change came as a patch.
        base_tree: tree of `base_tip`.
        head_tree: tree of `head`.
        entries: every path that differs between merge base and head, in byte order.
    """

    def __init__(
        self, git: Git, history: History, base_tip: str, bases: Sequence[str], head: str
    ) -> None:
        """Compare; `bases` are the merge bases of the target branch and `head`, at least one."""
        self._git = git
        self._history = history
        self._objects = Objects(git)
        self.base_tip = base_tip
        self.merge_bases = tuple(sorted(bases))
        # git's own order follows commit dates, which the author of a commit chooses.
        self.merge_base = self.merge_bases[0]
        self.head = head
        self.base_tree = self._objects.tree_of(base_tip)
        self.head_tree = self._objects.tree_of(head)
        self._merge_base_tree = self._objects.tree_of(self.merge_base)
        self.entries: tuple[Entry, ...] = changed_paths(git, self._merge_base_tree, self.head_tree)
        self._by_path = {entry.path: entry for entry in self.entries}
        self._diffs = LineDiffs(self._objects, self.entries)
        self._former = FormerSides(git, base_tip)
        self._between: dict[tuple[str, str], Mapping[str, Entry]] = {}

    def close(self) -> None:
        """End git and remove its temporary files; facts not read yet can not be read any more."""
        self._git.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def process_count(self) -> int:
        """Number of git processes started so far."""
        return self._git.process_count

    @property
    def judged_tree(self) -> str | None:
        """The tree that merging would leave on the target branch; None when it conflicts.

        Raises:
            FactUnavailable: the merge can not be tried (see `fasttrack.change.judged`).
        """
        return self._merge.tree

    @property
    def conflicts(self) -> tuple[str, ...]:
        """Paths that conflict with the target branch; raises as `judged_tree` does."""
        return self._merge.conflicts

    @cached_property
    def base(self) -> Tree:
        """Files at the tip of the target branch."""
        return Tree.listed(self._git, self.base_tree)

    @cached_property
    def head_files(self) -> Tree:
        """Files of the head."""
        if self._merge_base_tree == self.base_tree:
            return self.base.with_entries(self.entries)
        return Tree.listed(self._git, self.head_tree)

    @cached_property
    def judged(self) -> Tree:
        """Files of the judged tree; FactUnavailable when the merge conflicts or is not tried."""
        if self.judged_tree is None:
            raise FactUnavailable("the change conflicts with the target branch; rebase it")
        if self.judged_tree == self.head_tree:
            return self.head_files
        return Tree.listed(self._git, self.judged_tree)

    @cached_property
    def landing(self) -> tuple[Entry, ...]:
        """What merging does to the target branch: its tip's side and the judged tree's, by path.

        Not always what `entries` says of the same path. git follows renames on the target branch,
        so that an edit of one file can land in another, and where merge bases are several a head
        can undo what was merged after `merge_base` without differing from it.

        Raises:
            FactUnavailable: the merge conflicts or is not tried, or a tree can not be listed.
        """
        if self.head_tree == self.judged_tree and self._merge_base_tree == self.base_tree:
            return self.entries
        return self.base.changes_to(self.judged)

    @property
    def merges_from_its_start(self) -> bool:
        """Whether the merge has the commit that the change starts at as its only merge base.

        A clean merge then does at each path what `entries` says, except for renames.
        """
        return self._history.merge_bases(self.base_tip, self.head) == (self.merge_base,)

    def steps(self, paths: Iterable[str], since: str) -> Iterator[Step]:
        """What the target branch did to some paths since a commit; see `FormerSides.steps`."""
        return self._former.steps({path: self.base.get(path) or ABSENT for path in paths}, since)

    def between(self, before: str, after: str) -> Mapping[str, Entry]:
        """What differs between two commits, by path.

        Raises:
            PastUnavailable: trees that are not in this clone, or that differ too much.
        """
        trees = before, after
        if trees not in self._between:
            try:
                old, new = (self._objects.tree_of(commit) for commit in trees)
                found = changed_paths(self._git, old, new)
            except (InputError, FactUnavailable) as reason:
                raise PastUnavailable(str(reason)) from reason
            self._between[trees] = {entry.path: entry for entry in found}
        return self._between[trees]

    def passed(self) -> Iterator[Passed]:
        """What each commit of the change but its last does; see `fasttrack.change.passed`.

        Raises:
            FactUnavailable: too many commits, too much that they do, or what is not in this clone.
        """
        known = {*self.merge_bases, self.base_tip}
        commits = dict(commits_between(self._git, sorted(known), self.head))
        starts = {one for parents in commits.values() for one in parents} - commits.keys()
        commits.pop(self.head, None)
        if commits:
            yield from passed(self._git, commits)
        for start in sorted(starts - known) if self._can_be_next else ():
            if not self.was_at(start):
                found = self.between(self.merge_base, start).values()
                yield from (Passed(start, entry) for entry in found)

    @property
    def _can_be_next(self) -> bool:
        """Whether the target branch can go on to the head as it is."""
        return self.base_tip in self._history.merge_bases(self.base_tip, self.head)

    def was_at(self, commit: str) -> bool:
        """Whether the target branch is at a commit or was; see `FormerSides.has`."""
        return self._former.has(commit)

    def left_at(self, commit: str) -> int | None:
        """When the target branch went on from a commit of its own; see `FormerSides.left_at`."""
        return self._former.left_at(commit)

    def has_merged(self, commit: str) -> bool:
        """Whether a commit came to the target branch by a merge; see `FormerSides.has_merged`."""
        return self._former.has_merged(commit)

    @cached_property
    def branch_point(self) -> str:
        """The newest of the target branch's own commits that the head descends from, or is.

        Not always `merge_base`, which may be a commit that was merged into both.

        Raises:
            FactUnavailable: none of its last few thousand, or not in this clone.
        """
        return self._former.newest_below(self.head)

    @cached_property
    def departed(self) -> tuple[Entry, ...]:
        """Every path that differs between `branch_point` and head, in byte order.

        Raises:
            FactUnavailable: as `branch_point`.
            InputError: as when the change was read.
        """
        if self.branch_point == self.merge_base:
            return self.entries
        return changed_paths(self._git, self._objects.tree_of(self.branch_point), self.head_tree)

    def entry(self, path: str) -> Entry | None:
        """The entry of a path; None when the change leaves it alone."""
        return self._by_path.get(path)

    def size(self, side: Side) -> int:
        """Bytes of one side's blob, without reading it; FactUnavailable when it has none."""
        return self._diffs.size(side)

    def blob(self, side: Side, limit: int = BLOB_LIMIT) -> bytes:
        """The bytes of one side; FactUnavailable when over `limit` bytes or not in this clone."""
        return self._diffs.blob(side, limit)

    def blobs(self, sides: Sequence[Side], limit: int = BLOB_LIMIT) -> Iterator[bytes]:
        """The bytes of many sides, in their order, read in batches; raises as `blob` does."""
        return self._diffs.blobs(sides, limit)

    def text(self, side: Side, limit: int = BLOB_LIMIT) -> str:
        """The UTF-8 text of one side; FactUnavailable when it is none, and as for `blob`."""
        return decode(self.blob(side, limit), f"object {side.oid}")

    def added_lines(self, entry: Entry) -> tuple[AddedLine, ...]:
        """The lines that an entry adds; FactUnavailable when not text or beyond the limits."""
        return self._diffs.added_lines(entry)

    def line_counts(self, entry: Entry) -> tuple[int, int]:
        """Added and removed lines of an entry; FactUnavailable beyond the limits."""
        return self._diffs.line_counts(entry)

    def change_digest(self, is_evidence: Callable[[str], bool]) -> str:
        """The name of the change by its content, which approvals bind to.

        SHA-256 over the records `<old mode> <old id> <new mode> <new id> <path>` + NUL in byte
        order of the paths, `-` standing for the id of an absent file.

        Args:
            is_evidence: tells the paths that are left out.
        """
        digest = hashlib.sha256()
        for entry in self.entries:
            if not is_evidence(entry.path):
                sides = (entry.old.mode, entry.old.oid, entry.new.mode, entry.new.oid)
                record = " ".join(field or "-" for field in sides)
                digest.update(record.encode("ascii") + b" " + path_bytes(entry.path) + b"\0")
        return digest.hexdigest()

    @cached_property
    def _merge(self) -> Merge:
        bases = self._history.merge_bases(self.base_tip, self.head)
        if not bases:
            raise FactUnavailable("head and the tip of the target branch share no history")
        if self.base_tip in bases:  # the target branch has not moved: also every merge group
            return Merge(self.head_tree, ())
        if self.head in bases:
            return Merge(self.base_tree, ())
        sides = [entry.new for entry in self.entries if entry.new.present]
        largest = max((self.size(side) for side in sides if not side.is_gitlink), default=0)
        return merge(self._git, self.base_tip, self.head, largest)
