# SPDX-License-Identifier: Apache-2.0
"""Paths and what git stores at them: one side of a path, one changed path, one whole tree."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from fasttrack.change.git import Git, GitFailure
from fasttrack.errors import FactUnavailable, InputError

ABSENT_MODE = "000000"
SYMLINK_MODE = "120000"
GITLINK_MODE = "160000"

TREE_PATHS_LIMIT = 300_000
"""Paths of one tree: about 90 MB of names and ids."""

TREE_BYTES_LIMIT = 64 * 1024 * 1024
"""Bytes of a tree's listing; a few nested trees can name one directory a billion times."""

CHANGED_PATHS_LIMIT = 50_000
"""Changed paths of one change; nobody reviews more, and each costs every rule some work."""


@dataclass(frozen=True, slots=True)
class Side:
    """What one tree holds at a path.

    Attributes:
        mode: six octal digits, such as `100644`; `000000` when there is nothing.
        oid: object id in hexadecimal; empty when there is nothing.
    """

    mode: str
    oid: str

    @property
    def present(self) -> bool:
        """Whether there is anything."""
        return self.mode != ABSENT_MODE

    @property
    def is_symlink(self) -> bool:
        """Whether it is a symbolic link (its blob is the target)."""
        return self.mode == SYMLINK_MODE

    @property
    def is_gitlink(self) -> bool:
        """Whether it is a commit of another repository (a submodule)."""
        return self.mode == GITLINK_MODE


ABSENT = Side(ABSENT_MODE, "")


@dataclass(frozen=True, slots=True)
class Entry:
    """One path that differs between the merge base and the head.

    A rename is two entries, one deleted and one added, so that both paths are judged.

    Attributes:
        path: `/`-separated; bytes that are not UTF-8 are surrogate escapes.
        old: the merge base's side.
        new: the head's side.
    """

    path: str
    old: Side
    new: Side

    @property
    def added(self) -> bool:
        """Whether only the head has the path."""
        return not self.old.present

    @property
    def deleted(self) -> bool:
        """Whether only the merge base has the path."""
        return not self.new.present

    @property
    def modified(self) -> bool:
        """Whether both have it."""
        return self.old.present and self.new.present

    @property
    def is_symlink(self) -> bool:
        """Whether either side is a symbolic link."""
        return self.old.is_symlink or self.new.is_symlink

    @property
    def is_gitlink(self) -> bool:
        """Whether either side is a submodule commit."""
        return self.old.is_gitlink or self.new.is_gitlink

    @property
    def mode_changed(self) -> bool:
        """Whether both sides are there with different modes."""
        return self.modified and self.old.mode != self.new.mode


class Tree:
    """All files of one tree, listed when first asked; iterates over paths in byte order."""

    def __init__(self, load: Callable[[], Mapping[str, str]]) -> None:
        self._load = load

    @classmethod
    def listed(cls, git: Git, oid: str) -> "Tree":
        """The tree with this id.

        Looking into it raises FactUnavailable when it is too large or not all there.
        """
        return cls(lambda: _list_tree(git, oid))

    def with_entries(self, entries: tuple[Entry, ...]) -> "Tree":
        """This tree after a change: needs no git when this one is listed already."""
        return Tree(lambda: _apply(self._records, entries))

    def has_folder(self, path: str) -> bool:
        """Whether there is a file below a path."""
        return path in self._folders

    def changes_to(self, after: "Tree") -> tuple[Entry, ...]:
        """The paths that differ between this tree and another, in byte order."""
        old, new = self._records, after._records
        paths = [path for path, record in old.items() if new.get(path) != record]
        paths += [path for path in new if path not in old]
        entries = (
            Entry(path, self.get(path) or ABSENT, after.get(path) or ABSENT)
            for path in sorted(paths, key=path_bytes)
        )
        return tuple(entry for entry in entries if entry.old != entry.new)

    def get(self, path: str) -> Side | None:
        """What is at a path; None when no file is (a directory is no file)."""
        record = self._records.get(path)
        if record is None:
            return None
        mode, _, oid = record.split(" ")
        return Side(mode, oid)

    def __contains__(self, path: object) -> bool:
        return path in self._records

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    @cached_property
    def _folders(self) -> frozenset[str]:
        folders: set[str] = set()
        for path in self._records:
            folder = path.rpartition("/")[0]
            while folder and folder not in folders:
                folders.add(folder)
                folder = folder.rpartition("/")[0]
        return frozenset(folders)

    @cached_property
    def _records(self) -> Mapping[str, str]:
        return self._load()


def changed_paths(git: Git, old_tree: str, new_tree: str) -> tuple[Entry, ...]:
    """The paths that differ between two trees, in byte order, renames as both of their sides.

    Raises:
        InputError: more than `CHANGED_PATHS_LIMIT` paths, one path twice (a malformed tree), or
            trees that git can not read.
    """
    options = ("-r", "-z", "--raw", "--no-renames", "--no-abbrev")
    try:
        raw = git.run("diff-tree", *options, old_tree, new_tree, limit=TREE_BYTES_LIMIT).out
    except GitFailure as error:
        raise InputError.one(
            "change",
            str(error),
            f"trees that are all in this clone, with at most {CHANGED_PATHS_LIMIT:,} changes",
            "git fetch --refetch --no-filter" if "unable to read" in error.stderr else "",
        ) from error
    count = raw.count(b"\0") // 2
    if count > CHANGED_PATHS_LIMIT:
        saw = f"{count:,} changed paths"
        raise InputError.one("change", saw, f"at most {CHANGED_PATHS_LIMIT:,}", "split it")
    entries = {entry.path: entry for entry in raw_entries(raw)}
    if len(entries) != count:
        raise InputError.one("change", "a tree that lists one path twice", "well-formed trees")
    return tuple(entries[path] for path in sorted(entries, key=path_bytes))


def raw_entries(raw: bytes) -> Iterator[Entry]:
    """What `git diff-tree -z --raw --no-renames --no-abbrev` printed, without ids of commits."""
    fields = raw.decode("utf-8", "surrogateescape").split("\0")
    return (_entry(header, path) for header, path in _pairs(fields))


def raw_entries_of_commits(raw: bytes) -> Iterator[tuple[str, Entry]]:
    """The same of `git diff-tree --stdin`, where each commit's id stands before its entries."""
    fields = iter(raw.decode("utf-8", "surrogateescape").split("\0")[:-1])
    commit = ""
    for field in fields:
        if field.startswith(":"):
            yield commit, _entry(field, next(fields))
        else:
            commit = field


def path_bytes(path: str) -> bytes:
    """A path as git stores it; the order of all listings."""
    return path.encode("utf-8", "surrogateescape")


def _pairs(fields: list[str]) -> Iterator[tuple[str, str]]:
    return zip(fields[0:-1:2], fields[1::2], strict=True)


def _entry(header: str, path: str) -> Entry:
    old_mode, new_mode, old_oid, new_oid, _ = header.removeprefix(":").split(" ")
    return Entry(path, _side(old_mode, old_oid), _side(new_mode, new_oid))


def _side(mode: str, oid: str) -> Side:
    return ABSENT if mode == ABSENT_MODE else Side(mode, oid)


def _list_tree(git: Git, oid: str) -> Mapping[str, str]:
    # No --format: with it, git 2.39 quotes paths in spite of -z.
    raw = git.run("ls-tree", "-r", "-z", oid, limit=TREE_BYTES_LIMIT).out
    count = raw.count(b"\0")
    if count > TREE_PATHS_LIMIT:
        saw = f"tree {oid} has {count:,} paths"
        raise FactUnavailable(f"{saw}; at most {TREE_PATHS_LIMIT:,} are read")
    lines = raw.decode("utf-8", "surrogateescape").split("\0")[:-1]
    records: dict[str, str] = {}
    for line in lines:
        record, _, path = line.partition("\t")
        records[path] = record
    if len(records) != count:
        raise FactUnavailable(f"tree {oid} lists one path twice")
    return records


def _apply(records: Mapping[str, str], entries: tuple[Entry, ...]) -> Mapping[str, str]:
    after = dict(records)
    for entry in entries:
        if entry.added and entry.path in after:
            # The second of two entries of one name, of which git compared the first.
            raise InputError.one("change", "a tree that lists one path twice", "well-formed trees")
        if entry.deleted:
            del after[entry.path]
        else:
            after[entry.path] = f"{entry.new.mode} object {entry.new.oid}"
    return dict(sorted(after.items(), key=lambda item: path_bytes(item[0])))
