# SPDX-License-Identifier: Apache-2.0
r"""Build small git repositories for tests, fixtures and the demo, without running git.

Objects are written as git stores them, with a fixed identity and dates that follow the order of
the commits, so that the same calls give the same ids everywhere. Nothing is checked: trees that
git itself would refuse to make (`..`, one path twice) can be built to see them refused.

    repo = Repo(tmp_path / "repo")
    first = repo.commit("main", {"a.py": "x = 1\n"})
    repo.commit("topic", {"a.py": None, "b/c.py": "y = 2\n"}, parent=first)
"""

import hashlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

IDENTITY = "A U Thor <author@example.com>"
FIRST_DATE = 1_795_000_000
"""Seconds since 1970 of the first commit, in November 2026; each later one is a minute younger."""


@dataclass(frozen=True)
class File:
    """A file with a mode of its own, such as `100755`."""

    content: bytes | str
    mode: str = "100644"


@dataclass(frozen=True)
class Symlink:
    """A symbolic link."""

    target: bytes | str


@dataclass(frozen=True)
class Gitlink:
    """A commit of another repository, as submodules record it."""

    oid: str


@dataclass(frozen=True)
class Stored:
    """An object that is written already, or nowhere, by its id; mode `40000` puts a folder."""

    oid: str
    mode: str = "100644"


Content = bytes | str | None | File | Symlink | Gitlink | Stored
"""What a commit does to a path: text and bytes are plain files, None deletes."""

_Files = dict[bytes, tuple[str, str]]


class Repo:
    """A git repository that is written to, never read.

    Attributes:
        path: the directory to hand to the code under test.
        git_dir: where objects and refs are.
    """

    def __init__(
        self,
        path: Path,
        *,
        object_format: str = "sha1",
        bare: bool = False,
        default_branch: str = "main",
    ) -> None:
        """Make an empty repository whose HEAD is the (unborn) default branch."""
        self.path = path
        self.git_dir = path if bare else path / ".git"
        self._hash = object_format
        self._snapshots: dict[str, _Files] = {}
        self._tips: dict[str, str] = {}
        self._written: set[str] = set()
        for folder in ("objects", "refs/heads"):
            (self.git_dir / folder).mkdir(parents=True, exist_ok=True)
        config = f"[core]\n\trepositoryformatversion = 1\n\tbare = {str(bare).lower()}\n"
        config += f"[extensions]\n\tobjectFormat = {object_format}\n"
        (self.git_dir / "config").write_text(config, encoding="ascii")
        self.checkout(default_branch)

    def commit(
        self,
        branch: str,
        files: Mapping[str, Content],
        *,
        parent: str | Sequence[str] | None = None,
        message: str = "change\n",
        at: int | None = None,
    ) -> str:
        """Commit on a branch and return the commit's id.

        Args:
            branch: moved to the new commit.
            files: path to what becomes of it, on top of the first parent's files. A path may
                hold anything but NUL; bytes that are not UTF-8 as surrogate escapes.
            parent: one id, or several for a merge, or an empty sequence for a root commit;
                by default the branch's tip, and a root commit when there is none.
            message: the commit message.
            at: seconds since 1970; by default a minute after the commit made before.
        """
        if parent is None:
            parent = self._tips.get(branch, ())
        parents = (parent,) if isinstance(parent, str) else tuple(parent)
        snapshot = dict(self._snapshots[parents[0]]) if parents else {}
        for path, content in files.items():
            raw = path.encode("utf-8", "surrogateescape")
            if content is None:
                del snapshot[raw]
            else:
                snapshot[raw] = self._store(content)
        oid = self.commit_tree(self._write_tree(snapshot), parents, message, at)
        self._snapshots[oid] = snapshot
        self.branch(branch, oid)
        return oid

    def commit_tree(
        self,
        tree: str,
        parents: Sequence[str] = (),
        message: str = "change\n",
        at: int | None = None,
    ) -> str:
        """Write a commit of any tree, without moving a branch."""
        date = FIRST_DATE + 60 * len(self._snapshots) if at is None else at
        stamp = f"{IDENTITY} {date} +0000"
        lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
        lines += [f"author {stamp}", f"committer {stamp}", "", message]
        return self.write("commit", "\n".join(lines).encode("utf-8", "surrogateescape"))

    def tree(self, entries: Sequence[tuple[str, bytes, str]]) -> str:
        """Write one tree object from (mode, name, id) records exactly as given."""
        records = (
            mode.lstrip("0").encode("ascii") + b" " + name + b"\0" + bytes.fromhex(oid)
            for mode, name, oid in entries
        )
        return self.write("tree", b"".join(records))

    def write(self, kind: str, content: bytes) -> str:
        """Write any object and return its id."""
        data = f"{kind} {len(content)}\0".encode("ascii") + content
        oid = hashlib.new(self._hash, data, usedforsecurity=False).hexdigest()
        if oid not in self._written:
            self._written.add(oid)
            folder = self.git_dir / "objects" / oid[:2]
            folder.mkdir(exist_ok=True)
            (folder / oid[2:]).write_bytes(zlib.compress(data, 1))
        return oid

    def branch(self, name: str, oid: str) -> None:
        """Point a branch at a commit."""
        self._tips[name] = oid
        self.ref(f"refs/heads/{name}", oid)

    def ref(self, name: str, value: str) -> None:
        """Point any ref, such as `refs/tags/v1`, at an id, or at a ref with `ref: refs/...`."""
        file = self.git_dir / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value + "\n", encoding="utf-8")

    def checkout(self, branch: str) -> None:
        """Make a branch HEAD; no file is written outside the git directory."""
        self.ref("HEAD", f"ref: refs/heads/{branch}")

    def _store(self, content: bytes | str | File | Symlink | Gitlink | Stored) -> tuple[str, str]:
        match content:
            case Stored(oid, mode):
                return mode, oid
            case Gitlink(oid):
                return "160000", oid
            case Symlink(target):
                return "120000", self._blob(target)
            case File(inner, mode):
                return mode, self._blob(inner)
            case _:
                return "100644", self._blob(content)

    def _blob(self, content: bytes | str) -> str:
        data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape")
        return self.write("blob", data)

    def _write_tree(self, files: _Files) -> str:
        """Write the trees of a snapshot, deepest first."""
        folders: dict[bytes, list[tuple[str, bytes, str]]] = {b"": []}
        for path, (mode, oid) in files.items():
            folder, _, name = path.rpartition(b"/")
            folders.setdefault(folder, []).append((mode, name, oid))
            while folder and folder.rpartition(b"/")[0] not in folders:
                folder = folder.rpartition(b"/")[0]
                folders[folder] = []
        top = ""
        for folder in sorted(folders, key=lambda f: f.count(b"/") + bool(f), reverse=True):
            top = self.tree(sorted(folders[folder], key=_tree_order))
            if folder:
                parent, _, name = folder.rpartition(b"/")
                folders[parent].append(("40000", name, top))
        return top


def _tree_order(entry: tuple[str, bytes, str]) -> bytes:
    """Order of git, which sorts folders as if their names ended in a slash."""
    return entry[1] + b"/" if entry[0] == "40000" else entry[1]
