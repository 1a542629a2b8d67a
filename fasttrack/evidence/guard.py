# SPDX-License-Identifier: Apache-2.0
"""Notices when somebody else than a collector writes to its bundle.

Tests run as the same user as the collector, so that nothing keeps them from the bundle's files. A
run's own file must be what the run wrote. Files of other runs may come and grow, as other
collectors use the same folder; none may lose or change a byte. A statement that a test forges in a
file of another run is not told from one of that run.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from fasttrack.errors import InputError, Problem
from fasttrack.evidence.bundle import SUFFIX, append
from fasttrack.evidence.statement import Statement


@dataclass(frozen=True)
class _State:
    size: int
    sha256: bytes


class Guard:
    """The bundle as one run found and wrote it."""

    def __init__(self, directory: Path, run: str) -> None:
        """Notes what is there.

        Args:
            directory: the bundle; it need not be there yet.
            run: the run's id.

        Raises:
            InputError: a file can not be read.
        """
        self._directory = directory
        self._own = f"{run}{SUFFIX}"
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
        fix = "measure again, with another --out"
        problems = [
            Problem(name, saw, "what the collector wrote", fix)
            for name, state in sorted(self._seen.items())
            if (saw := self._difference(name, state))
        ]
        if self._own not in self._seen and (self._directory / self._own).exists():
            problems.append(Problem(self._own, "a new file", "none of this run yet", fix))
        if problems:
            raise InputError(problems)

    def _difference(self, name: str, state: _State) -> str:
        raw = _read(self._directory / name, state.size + 1)
        if raw is None:
            return "no such file"
        if hashlib.sha256(raw[: state.size]).digest() != state.sha256:
            return "other bytes"
        return "more bytes" if name == self._own and len(raw) > state.size else ""

    def _note_all(self) -> None:
        for path in sorted(self._directory.glob(f"*{SUFFIX}")):
            raw = _read(path)
            if raw is not None:
                self._seen[path.name] = _State(len(raw), hashlib.sha256(raw).digest())


def _read(path: Path, limit: int = -1) -> bytes | None:
    """A file's first bytes; None when it is not there."""
    try:
        with path.open("rb") as file:
            return file.read(limit)
    except FileNotFoundError:
        return None
    except OSError as error:
        saw = error.strerror or "unreadable"
        raise InputError.one(path.name, saw, "a file of the bundle that can be read") from error
