# SPDX-License-Identifier: Apache-2.0
"""Evidence files: `<sha256 of the file's bytes>.dsse.jsonl`, one envelope a line.

The store only grows. A file's name is the digest of its bytes, so that two writers never write
different things to one name, a file that was edited or cut short betrays itself, and merging two
stores is a union. A file is read when its name fits its bytes, and a line when it is an envelope of
a statement; everything else is a problem and counts for nothing. Whose signatures count is not
asked here.
"""

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fasttrack.change.tree import Side, Tree
from fasttrack.errors import FactUnavailable, InputError, Problem
from fasttrack.evidence.dsse import MAX_BYTES, Signed, read_envelope
from fasttrack.evidence.on_disk import sync_folder
from fasttrack.evidence.statement import Statement, read_statement

FOLDER = "evidence"
"""Name of the store inside the configuration folder."""
SUFFIX = ".dsse.jsonl"
MAX_FILE_BYTES = 1_000_000
"""As large as a file may be that a change brings; see rule FT115."""
MAX_FILE_LINES = 4096
"""No statement is so small that more fit."""
MAX_STORE_BYTES = 96 * 1024 * 1024
"""Of all files of one store; about 20,000 statements."""
MAX_PROBLEMS = 100
_NAME = re.compile(r"[0-9a-f]{64}\.dsse\.jsonl")


@dataclass(frozen=True)
class Stored:
    """One line of an evidence file.

    Attributes:
        source: file and line.
        signed: the envelope.
        statement: its payload.
    """

    source: str
    signed: Signed
    statement: Statement


@dataclass(frozen=True)
class Contents:
    """What evidence files hold.

    Attributes:
        statements: the lines that could be read, in the order of files and lines.
        problems: everything that could not, at most `MAX_PROBLEMS`.
    """

    statements: tuple[Stored, ...]
    problems: tuple[Problem, ...]


def read_folder(folder: Path) -> Contents:
    """The evidence files of a directory; one that is not there is empty.

    Raises:
        InputError: it is there and can not be listed.
    """
    return _gathered(_folder_files(folder))


def read_tree(tree: Tree, folder: str, blob: Callable[[Side, int], bytes]) -> Contents:
    """The evidence files of a git tree.

    Args:
        tree: the tree.
        folder: path of the store in it, such as `manifests/evidence`.
        blob: reads a file of at most so many bytes, as `Change.blob` does.

    Raises:
        FactUnavailable: the tree can not be listed.
    """
    prefix = folder + "/"
    names = sorted(
        path.removeprefix(prefix)
        for path in tree
        if path.startswith(prefix)
        and path.endswith(SUFFIX)
        and path.count("/") == prefix.count("/")
    )
    return _gathered((name, _tree_file(tree, prefix + name, blob)) for name in names)


def read_file(path: Path) -> Contents:
    """One evidence file, whatever its name unless that is a digest.

    Raises:
        InputError: it can not be read.
    """
    raw = _raw(path)
    named = _NAME.fullmatch(path.name) is not None
    return _gathered([(path.name, raw)], any_name=not named)


def write(folder: Path, envelopes: Iterable[bytes]) -> tuple[Path, ...]:
    """Writes envelopes to new files, each whole or not at all.

    Args:
        folder: the store; made when it is not there.
        envelopes: lines as `dsse.sign` makes them.

    Returns:
        The files that hold them, also those that were there already.

    Raises:
        InputError: a line is too large, or no line; or the folder can not be written.
    """
    chunks = [*_chunks(dict.fromkeys(envelopes))]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return tuple(_write_file(folder, chunk) for chunk in chunks)
    except OSError as error:
        saw = error.strerror or "an error of the file system"
        raise InputError.one(str(folder), saw, "a folder that can be written") from error


def merge(folder: Path, others: Sequence[Path]) -> tuple[tuple[Path, ...], tuple[Problem, ...]]:
    """Writes again what other stores hold and this one does not.

    Args:
        folder: the store that grows.
        others: folders of evidence files.

    Returns:
        The files that are new, and why some files or lines of the others were left out.

    Raises:
        InputError: a folder can not be read or written.
    """
    problems: list[Problem] = []
    known = {hashlib.sha256(line).digest() for line in _lines(folder, [])}
    new: dict[bytes, None] = {}
    for other in others:
        for line in _lines(other, problems):
            if hashlib.sha256(line).digest() not in known:
                new[line] = None
    return write(folder, new) if new else (), tuple(problems[:MAX_PROBLEMS])


def _gathered(files: Iterable[tuple[str, bytes | Problem]], *, any_name: bool = False) -> Contents:
    statements: list[Stored] = []
    problems: list[Problem] = []
    room = MAX_STORE_BYTES
    for name, raw in files:
        if isinstance(raw, bytes):
            room -= len(raw)
            if room < 0:
                saw, fix = f"a store of over {MAX_STORE_BYTES:,} bytes", "fasttrack evidence gc"
                problems.append(
                    Problem(name, saw, "fewer; this file and what follows is left", fix)
                )
                break
        for source, line in _file_lines(name, raw, problems, any_name=any_name):
            _read_line(source, line, statements, problems)
    return Contents(tuple(statements), tuple(problems[:MAX_PROBLEMS]))


def _read_line(source: str, line: bytes, statements: list[Stored], problems: list[Problem]) -> None:
    try:
        signed = read_envelope(line, source)
        statements.append(Stored(source, signed, read_statement(signed.payload, source)))
    except InputError as error:
        problems += error.problems[: max(0, MAX_PROBLEMS - len(problems))]


def _file_lines(
    name: str, raw: bytes | Problem, problems: list[Problem], *, any_name: bool = False
) -> Iterator[tuple[str, bytes]]:
    """Lines with file and number; nothing of a file that is not what its name says."""
    fault = raw if isinstance(raw, Problem) else _file_fault(name, raw, any_name=any_name)
    if fault is not None:
        problems.append(fault)
    elif isinstance(raw, bytes):
        for number, line in enumerate(raw.removesuffix(b"\n").split(b"\n"), 1):
            yield f"{name}:{number}", line


def _file_fault(name: str, raw: bytes, *, any_name: bool) -> Problem | None:
    digest = hashlib.sha256(raw).hexdigest()
    if len(raw) > MAX_FILE_BYTES:
        return _too_large(name, len(raw))
    if not any_name and name != digest + SUFFIX:
        fix = "git log -- the file tells who changed it; evidence is only added"
        return Problem(
            name, f"bytes with the digest {digest}", "the bytes that it is named by", fix
        )
    lines = raw.count(b"\n")
    if lines > MAX_FILE_LINES:
        return Problem(name, f"{lines:,} lines", f"at most {MAX_FILE_LINES:,}")
    return None


def _too_large(name: str, size: int | None = None) -> Problem:
    saw = "a larger file" if size is None else f"{size:,} bytes"
    return Problem(name, saw, f"at most {MAX_FILE_BYTES:,} bytes")


def _folder_files(folder: Path) -> Iterator[tuple[str, bytes | Problem]]:
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(SUFFIX))  # noqa: PTH208
    except FileNotFoundError:
        return
    except OSError as error:
        saw = error.strerror or "unreadable"
        raise InputError.one(str(folder), saw, "a folder of evidence files") from error
    for name in names:
        try:
            yield name, _raw(folder / name)
        except InputError as error:
            yield name, error.problems[0]


def _raw(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:  # noqa: PTH123  (pathlib opens no descriptors)
            return file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        saw = error.strerror or "unreadable"
        raise InputError.one(path.name, saw, "a plain file that can be read") from error


def _tree_file(tree: Tree, path: str, blob: Callable[[Side, int], bytes]) -> bytes | Problem:
    name, side = path.rpartition("/")[2], tree.get(path)
    if side is None or not side.mode.startswith("100"):
        return Problem(name, "no regular file", "an evidence file")
    try:
        return blob(side, MAX_FILE_BYTES)
    except FactUnavailable as reason:
        return Problem(name, str(reason), f"a file of at most {MAX_FILE_BYTES:,} bytes, all here")


def _lines(folder: Path, problems: list[Problem]) -> Iterator[bytes]:
    """The lines of a folder that are envelopes of statements."""
    for name, raw in _folder_files(folder):
        for source, line in _file_lines(name, raw, problems):
            read: list[Stored] = []
            _read_line(source, line, read, problems)
            if read:
                yield line


def _chunks(envelopes: Iterable[bytes]) -> Iterator[bytes]:
    """Contents of files, each as full as fits."""
    chunk: list[bytes] = []
    size = 0
    for line in envelopes:
        if len(line) > MAX_BYTES or b"\n" in line or not line:
            raise InputError.one("an envelope", f"{len(line):,} bytes", "one line of an envelope")
        if chunk and size + len(line) + 1 > MAX_FILE_BYTES:
            yield b"".join(chunk)
            chunk, size = [], 0
        chunk.append(line + b"\n")
        size += len(line) + 1
    if chunk:
        yield b"".join(chunk)


def _write_file(folder: Path, content: bytes) -> Path:
    """Writes beside, makes it durable, then gives it its name; readers never see half of it."""
    path = folder / (hashlib.sha256(content).hexdigest() + SUFFIX)
    if path.is_file() and _raw(path) == content:
        return path
    descriptor, beside = tempfile.mkstemp(prefix=".", suffix=".partial", dir=folder)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123
            os.fchmod(descriptor, 0o644)
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.replace(beside, path)  # noqa: PTH105
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside)  # noqa: PTH108
        raise
    sync_folder(folder)
    return path
