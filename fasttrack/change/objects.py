# SPDX-License-Identifier: Apache-2.0
"""Read objects through one long-lived `git cat-file`, sizes before contents, within bounds.

git runs with `--buffer`: it queues the requests it reads until it meets `flush`, and only then
writes. All requests of a batch are therefore written before the first answer is read, and neither
side can block the other.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import IO

from fasttrack.change.git import Git, Process
from fasttrack.errors import FactUnavailable

CACHE_BYTES = 96 * 1024 * 1024
"""Contents kept in memory, the oldest go first: all text of the largest change that is compared."""

BATCH_BYTES = 8 * 1024 * 1024
"""Contents asked for ahead in one batch."""

RESTARTS_LIMIT = 16
"""How often git is started again after an object that ended it: damaged, or a small object that is
stored as a delta against an enormous one. Such an object hides itself, and no other one."""

_BATCH_REQUESTS = 4096


class GitStopped(FactUnavailable):
    """`git cat-file` ended before it answered."""

    def __init__(self, what: str) -> None:
        super().__init__(f"git cat-file stopped before it answered for {what}; try `git fsck`")


class Objects:
    """Objects of one repository by id; every answer is a pure function of the id."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._process: Process | None = None
        self._sizes: dict[str, int | None] = {}
        self._contents: OrderedDict[str, bytes] = OrderedDict()
        self._cached_bytes = 0
        self._restarts = 0
        self._unreadable: set[str] = set()

    def tree_of(self, commit: str) -> str:
        """The id of a commit's tree."""
        ((oid, _),) = self._info([f"{commit}^{{tree}}"])
        if not oid:
            raise _missing(f"{commit}^{{tree}}")
        return oid

    def load_sizes(self, oids: Iterable[str]) -> None:
        """Learn many sizes at once."""
        unknown = [oid for oid in dict.fromkeys(oids) if oid not in self._sizes]
        for start in range(0, len(unknown), _BATCH_REQUESTS):
            batch = unknown[start : start + _BATCH_REQUESTS]
            for oid, (_, size) in zip(batch, self._info(batch), strict=True):
                self._sizes[oid] = size

    def has(self, oid: str) -> bool:
        """Whether the object is in this clone."""
        return self._size(oid) is not None

    def size(self, oid: str) -> int:
        """Bytes of an object, without reading it; FactUnavailable when it is not there."""
        size = self._size(oid)
        if size is None:
            raise _missing(oid)
        return size

    def read(self, oid: str, limit: int, ahead: Iterable[str] = ()) -> bytes:
        """An object's bytes.

        Args:
            oid: the object.
            limit: bytes above which it is not read at all.
            ahead: objects likely to be asked for next; read in the same batch as far as they
                are small, because a round trip costs more than a small object.

        Raises:
            FactUnavailable: larger than `limit`, or not in this clone.
        """
        size = self.size(oid)
        if size > limit:
            raise FactUnavailable(f"object {oid} has {size:,} bytes; at most {limit:,} are read")
        if oid not in self._contents:
            self._load(oid, self._worth_reading_ahead(oid, ahead, BATCH_BYTES - size))
        self._contents.move_to_end(oid)
        return self._contents[oid]

    def _size(self, oid: str) -> int | None:
        if oid not in self._sizes:
            self.load_sizes([oid])
        return self._sizes[oid]

    def _worth_reading_ahead(self, first: str, ahead: Iterable[str], room: int) -> list[str]:
        chosen: list[str] = []
        for oid in ahead:
            size = self._sizes.get(oid)
            if size is None or oid == first or oid in self._contents:
                continue
            if size > room or len(chosen) == _BATCH_REQUESTS:
                break
            room -= size
            chosen.append(oid)
        return list(dict.fromkeys(chosen))

    def _load(self, oid: str, ahead: Sequence[str]) -> None:
        """Fetch one object, with others until one of them has ended git; then each alone."""
        if not self._restarts:
            try:
                self._fetch([oid, *ahead], oid)
            except GitStopped:
                self._restart()
        if oid in self._unreadable:
            raise GitStopped(oid)
        if oid not in self._contents:
            try:
                self._fetch([oid], oid)
            except GitStopped:
                self._unreadable.add(oid)
                self._restart()
                raise

    def _restart(self) -> None:
        if self._restarts < RESTARTS_LIMIT:
            self._restarts += 1
            self._process = None

    def _fetch(self, oids: Sequence[str], keep: str) -> None:
        lines = self._ask(f"contents {oid}\n" for oid in oids)
        for oid in oids:
            header = lines.readline().split()
            if len(header) != 3:
                raise GitStopped(oid)
            content = lines.read(int(header[2]))
            if len(content) != int(header[2]) or lines.read(1) != b"\n":
                raise GitStopped(oid)
            self._contents[oid] = content
            self._cached_bytes += len(content)
        while self._cached_bytes > CACHE_BYTES and len(self._contents) > 1:
            oldest = next(oid for oid in self._contents if oid != keep)
            self._cached_bytes -= len(self._contents.pop(oldest))

    def _info(self, names: Sequence[str]) -> list[tuple[str, int | None]]:
        lines = self._ask(f"info {name}\n" for name in names)
        answers: list[tuple[str, int | None]] = []
        for name in names:
            words = lines.readline().decode("ascii", "replace").split()
            if not words:
                raise GitStopped(name)
            known = len(words) == 3 and words[2].isdigit()
            answers.append((words[0], int(words[2])) if known else ("", None))
        return answers

    def _ask(self, requests: Iterable[str]) -> IO[bytes]:
        self._git.require_open()
        if self._process is None:
            self._process = self._git.start("cat-file", "--batch-command", "--buffer")
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write("".join(requests).encode("ascii") + b"flush\n")
            process.stdin.flush()
        except BrokenPipeError as error:
            raise GitStopped("any object") from error
        return process.stdout


def _missing(oid: str) -> FactUnavailable:
    return FactUnavailable(
        f"object {oid} is not in this clone (partial or damaged);"
        " run `git fetch --refetch --no-filter` and check again"
    )
