# SPDX-License-Identifier: Apache-2.0
"""The unsigned bundle: a directory of statements that `sign` reads later.

Each run appends to a file of its own, `<run id>.jsonl`, one statement payload a line, so that two
collectors at once never write into one file. Appending is one write on an `O_APPEND` descriptor
and one `fsync`. A process that is killed can only leave a line without its end: readers drop it,
and the next append cuts it off. Nothing here is trusted by anybody; only signatures are.
"""

import fcntl
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from fasttrack.errors import InputError, Problem
from fasttrack.evidence.on_disk import sync_folder
from fasttrack.evidence.statement import MAX_BYTES, Statement, read_statement
from fasttrack.manifest.cells import CellId

SUFFIX = ".jsonl"
MAX_PROBLEMS = 100
"""Problems of one reading; a hostile bundle has one a line."""
_NAME = re.compile(r"[0-9a-f]{32}\.jsonl")
_TAIL = 64 * 1024


@dataclass(frozen=True)
class Entry:
    """One statement of a bundle.

    Attributes:
        where: file name and line.
        statement: what it says; its payload is exactly `statement.to_bytes()`.
    """

    where: str
    statement: Statement


@dataclass(frozen=True)
class Contents:
    """What a bundle holds, sorted by file and line.

    Attributes:
        entries: the statements that could be read.
        problems: everything that could not, each with file and line.
    """

    entries: tuple[Entry, ...]
    problems: tuple[Problem, ...]


def append(directory: Path, statements: Iterable[Statement]) -> None:
    """Appends statements, each to the file of its run.

    Either every statement is small enough or nothing is written.

    Args:
        directory: the bundle; made when it is not there.
        statements: of one or several runs.

    Raises:
        InputError: a statement is too large, or the file can not be written.
    """
    lines: dict[str, bytes] = {}
    for statement in statements:
        run, payload = statement.predicate.run.run, statement.to_bytes()
        if len(payload) > MAX_BYTES:
            where = f"{statement.cell.kind} {statement.cell.key}"
            raise InputError.one(where, f"{len(payload):,} bytes", f"at most {MAX_BYTES:,}")
        lines[run] = lines.get(run, b"") + payload + b"\n"
    for run, data in lines.items():
        path = directory / f"{run}{SUFFIX}"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            _append(path, data)
        except OSError as error:
            saw = error.strerror or "an error of the file system"
            raise InputError.one(str(path), saw, "a bundle that can be written") from error


def statements(directory: Path) -> Contents:
    """Reads every file of a bundle; a torn last line is as if it had never been written.

    Raises:
        InputError: the directory can not be read.
    """
    entries: list[Entry] = []
    problems: list[Problem] = []
    for path in _files(directory):
        for where, found in _read(path):
            if isinstance(found, Statement):
                entries.append(Entry(where, found))
            else:
                problems.extend(found.problems)
            if len(problems) >= MAX_PROBLEMS:
                return Contents(tuple(entries), tuple(problems[:MAX_PROBLEMS]))
    return Contents(tuple(entries), tuple(problems))


def open_plain(path: Path) -> BinaryIO:
    """A file to read: neither through a link, nor waiting for the other end of a pipe.

    Raises:
        FileNotFoundError: there is none.
        InputError: it is no plain file, or can not be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError.one(path.name, error.strerror or "an error", "a plain file") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError.one(path.name, "no plain file", "a plain file")
    return os.fdopen(descriptor, "rb")


def cells_done(directory: Path, plan: str) -> frozenset[CellId]:
    """Kind and key of the cells of a plan that the bundle has a statement of, whatever it says.

    A failure counts as done: running a cell until it passes would hide what it showed before.

    Args:
        directory: the bundle; one that is not there has no cells.
        plan: the plan's id.

    Raises:
        InputError: the directory can not be read.
    """
    if not directory.exists():
        return frozenset()
    read = (entry.statement for entry in statements(directory).entries)
    return frozenset(s.cell.id for s in read if s.predicate.run.plan == plan)


def _append(path: Path, data: bytes) -> None:
    with _locked(path) as descriptor:
        end = _end_of_whole_lines(descriptor)
        os.ftruncate(descriptor, end)
        try:
            _write(descriptor, data)
        except OSError:
            os.ftruncate(descriptor, end)  # all of it or nothing
            raise


def _write(descriptor: int, data: bytes) -> None:
    written = os.write(descriptor, data)
    if written != len(data):
        raise OSError(0, f"only {written:,} of {len(data):,} bytes could be written")
    os.fsync(descriptor)


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """A descriptor that no other process appends through; the directory's entry is durable."""
    new = not path.exists()
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if new:
            sync_folder(path.parent)
        yield descriptor
    finally:
        os.close(descriptor)


def _end_of_whole_lines(descriptor: int) -> int:
    """Offset behind the last line end; read from the back, as only the last line can be torn."""
    at = os.fstat(descriptor).st_size
    while at:
        start = max(0, at - _TAIL)
        newline = os.pread(descriptor, at - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        at = start
    return 0


def _files(directory: Path) -> list[Path]:
    try:
        return sorted(path for path in directory.iterdir() if path.suffix == SUFFIX)
    except OSError as error:
        saw = error.strerror or "not readable"
        raise InputError.one(str(directory), saw, "a directory of statements") from error


def _read(path: Path) -> Iterator[tuple[str, Statement | InputError]]:
    """The statements of one file, or what is wrong with them, each with its place."""
    if not _NAME.fullmatch(path.name):
        yield path.name, InputError.one(path.name, "this name", f"a run's id and `{SUFFIX}`")
        return
    try:
        file = open_plain(path)
    except FileNotFoundError:
        yield path.name, InputError.one(path.name, "no such file", "a plain file")
        return
    except InputError as error:
        yield path.name, error
        return
    with file:
        yield from _lines(file, path)


def _lines(file: BinaryIO, path: Path) -> Iterator[tuple[str, Statement | InputError]]:
    number = 0
    while line := file.readline(MAX_BYTES + 1):
        number += 1
        where = f"{path.name}:{number}"
        if not line.endswith(b"\n"):
            if len(line) > MAX_BYTES:  # no writer makes such a line, torn or not
                yield where, InputError.one(where, "a longer line", f"at most {MAX_BYTES:,} bytes")
            return
        try:
            yield where, _statement(line[:-1], where, path.stem)
        except InputError as error:
            yield where, error


def _statement(payload: bytes, where: str, run: str) -> Statement:
    statement = read_statement(payload, where)
    if statement.predicate.run.run != run:
        saw = f"a statement of run {statement.predicate.run.run}"
        raise InputError.one(where, saw, f"run {run}, as the file's name says")
    if statement.to_bytes() != payload:
        raise InputError.one(where, "another spelling of a statement", "what `to_bytes` writes")
    return statement
