# SPDX-License-Identifier: Apache-2.0
"""Notices when somebody else than a collector writes to its bundle.

A run's own file must be what the run wrote. A folder may be shared with other collectors: then
files of other runs come and grow, and none may lose or change a byte. Where no wall keeps tests
from the folder (`fasttrack.evidence.wall`), a statement that a test forges in a file of another run
can not be told from one of that run; so there a folder is shared only if the user says so.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from fasttrack.errors import InputError, Problem
from fasttrack.evidence.bundle import SUFFIX, append, open_plain
from fasttrack.evidence.statement import Statement

FIX = "measure again, with another --out"
_PIECE = 1 << 20


@dataclass(frozen=True)
class _State:
    size: int
    sha256: bytes


class Guard:
    """The bundle as one run found and wrote it."""

    def __init__(self, directory: Path, run: str, *, shared: bool) -> None:
        """Notes what is there.

        Args:
            directory: the bundle; it need not be there yet.
            run: the run's id.
            shared: whether other collectors may write there meanwhile.

        Raises:
            InputError: a file can not be read.
        """
        self._directory = directory
        self._own = f"{run}{SUFFIX}"
        self._shared = shared
        self._seen: dict[str, _State] = {}
        self._note_all()

    def append(self, statement: Statement) -> None:
        """Adds a statement of the run to the bundle.

        Raises:
            InputError: the bundle is not as it was left, or can not be written.
        """
        self.check()
        append(self._directory, [statement])
        self._note_all()

    def check(self) -> None:
        """Raises InputError, with every file that is not as it was left."""
        problems = [
            Problem(name, saw, "what the collector wrote", FIX)
            for name, state in sorted(self._seen.items())
            if (saw := self._difference(name, state))
        ]
        for path in sorted(self._directory.glob(f"*{SUFFIX}")):
            if path.name not in self._seen and (path.name == self._own or not self._shared):
                want = "none that this run did not write"
                problems.append(Problem(path.name, "a new file", want, self._fix(path.name)))
        if problems:
            raise InputError(problems)

    def _fix(self, name: str) -> str:
        if name == self._own:
            return FIX
        return f"{FIX}; or --shared, if another collector wrote it and all tests are trusted"

    def _difference(self, name: str, state: _State) -> str:
        found = _state(self._directory / name, state.size)
        if found is None:
            return "no such file"
        if found.sha256 != state.sha256:
            return "other bytes"
        grown = found.size > state.size and (name == self._own or not self._shared)
        return "more bytes" if grown else ""

    def _note_all(self) -> None:
        for path in sorted(self._directory.glob(f"*{SUFFIX}")):
            found = _state(path)
            if found is not None:
                self._seen[path.name] = found


def _state(path: Path, count: int | None = None) -> _State | None:
    """A file's size, and the digest of its first bytes or of all; None when it is not there."""
    try:
        with open_plain(path) as file:
            size = os.fstat(file.fileno()).st_size
            left, digest = size if count is None else count, hashlib.sha256()
            # In pieces: whoever writes here decides how large a file is.
            while left and (piece := file.read(min(left, _PIECE))):
                digest.update(piece)
                left -= len(piece)
    except FileNotFoundError:
        return None
    except OSError as error:
        saw = error.strerror or "unreadable"
        raise InputError.one(path.name, saw, "a file of the bundle that can be read") from error
    return _State(size, digest.digest())
