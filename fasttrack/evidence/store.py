# SPDX-License-Identifier: Apache-2.0
"""Evidence files: `<sha256 of the file's bytes>.dsse.jsonl.gz`, a signed statement a line.

A line is an envelope that keys signed, or a sigstore bundle that holds one. Files are written
compressed; plain ones, `.dsse.jsonl`, are read as well.

The store only grows. A file's name is the digest of its bytes, so that two writers never write
different things to one name, a file that was edited or cut short betrays itself, and merging two
stores is a union. A file is read when its name fits its bytes, and a line when it holds a
signed statement; everything else is a problem and counts for nothing. Whose signatures count is not
asked here.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fasttrack.change.tree import Side, Tree
from fasttrack.errors import InputError, Problem
from fasttrack.evidence.dsse import Signed, read_envelope
from fasttrack.evidence.packed import MAX_TEXT_BYTES, pack
from fasttrack.evidence.partial import remove_abandoned, write_whole
from fasttrack.evidence.sigstore_bundle import MAX_BYTES, read_bundle
from fasttrack.evidence.statement import Statement, read_statement
from fasttrack.evidence.store_files import (
    BUNDLE_SUFFIX,
    MAX_FILE_BYTES,
    MAX_FILE_LINES,
    SUFFIX,
    SUFFIXES,
    file_text,
    folder_files,
    named_by_digest,
    read_raw,
    text_lines,
    tree_file,
)

FOLDER = "evidence"
"""Name of the store inside the configuration folder."""
MAX_STORE_BYTES = 96 * 1024 * 1024
"""Of all files of one store, unpacked; about 20,000 statements."""
MAX_PROBLEMS = 100


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

    @property
    def file(self) -> str:
        """Name of the file."""
        return self.source.rpartition(":")[0]


@dataclass(frozen=True)
class Contents:
    """What evidence files hold.

    Attributes:
        statements: the lines that could be read, in the order of files and lines.
        problems: everything that could not, at most `MAX_PROBLEMS`.
        unread: why some files were not looked at, in words; empty when all were.
    """

    statements: tuple[Stored, ...]
    problems: tuple[Problem, ...]
    unread: str = ""


def read_folder(folder: Path) -> Contents:
    """The evidence files of a directory; one that is not there is empty.

    Raises:
        InputError: it is there and can not be listed.
    """
    return _gathered(folder_files(folder))


def read_tree(tree: Tree, folder: str, blob: Callable[[Side, int], bytes]) -> Contents:
    """The evidence files of a git tree.

    Args:
        tree: the tree.
        folder: path of the store in it, such as `manifests/evidence`.
        blob: reads a file of at most so many bytes, as `Change.blob` does.

    Raises:
        FactUnavailable: the tree can not be listed.
    """
    return _gathered(_tree_files(tree, folder, blob))


def is_too_large(tree: Tree, folder: str, blob: Callable[[Side, int], bytes]) -> bool:
    """Whether `read_tree` would leave files unread; nothing is understood.

    Raises:
        FactUnavailable: the tree can not be listed.
    """
    room = MAX_STORE_BYTES
    for name, raw in _tree_files(tree, folder, blob):
        room -= len(file_text(name, raw)[0])
        if room < 0:
            return True
    return False


def read_file(path: Path) -> Contents:
    """One evidence file, whatever its name unless that is a digest.

    Raises:
        InputError: it can not be read.
    """
    raw = read_raw(path)
    return _gathered([(path.name, raw)], any_name=not named_by_digest(path.name))


def read_signed(line: bytes, source: str) -> Signed:
    """An envelope or a sigstore bundle; only a bundle has a media type.

    Args:
        line: either.
        source: how messages name it.

    Raises:
        InputError: neither, with everything that is wrong with it.
    """
    read = read_bundle if b'"mediaType"' in line else read_envelope
    return read(line, source)


def write(folder: Path, envelopes: Iterable[bytes]) -> tuple[Path, ...]:
    """Writes envelopes to new files, each whole or not at all.

    Args:
        folder: the store; made when it is not there.
        envelopes: lines as `dsse.sign` makes them, or bundles on one line.

    Returns:
        The files that hold them, also those that were there already.

    Raises:
        InputError: a line is too large, or no line; or the folder can not be written.
    """
    chunks = [*_chunks(dict.fromkeys(envelopes))]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_abandoned(folder)
        return tuple(_write_file(folder, chunk) for chunk in chunks)
    except OSError as error:
        saw = error.strerror or "an error of the file system"
        raise InputError.one(str(folder), saw, "a folder that can be written") from error


def merge(
    folder: Path, others: Sequence[Path], *, pack_plain: bool = False
) -> tuple[tuple[Path, ...], tuple[Problem, ...]]:
    """Writes again what other stores hold and this one does not.

    Args:
        folder: the store that grows.
        others: folders of evidence files, single evidence files, and sigstore bundles.
        pack_plain: what only plain files of the store hold is written again too.

    Returns:
        The files that are new, and why some files or lines of the others were left out.

    Raises:
        InputError: a folder or file can not be read, or the store can not be written.
    """
    problems: list[Problem] = []
    suffixes = (SUFFIX,) if pack_plain else SUFFIXES
    known = {hashlib.sha256(line).digest() for line in _lines(folder, [], suffixes)}
    new: dict[bytes, None] = {}
    for other in (folder, *others) if pack_plain else others:
        for line in _lines(other, problems):
            if hashlib.sha256(line).digest() not in known:
                new[line] = None
    return write(folder, new) if new else (), tuple(problems[:MAX_PROBLEMS])


def _gathered(files: Iterable[tuple[str, bytes | Problem]], *, any_name: bool = False) -> Contents:
    statements: list[Stored] = []
    problems: list[Problem] = []
    unread: list[Problem] = []
    for source, line in _all_lines(files, problems, unread, any_name=any_name):
        _read_line(source, line, statements, problems)
    told = (*problems[: MAX_PROBLEMS - len(unread)], *unread)
    return Contents(tuple(statements), told, "".join(map(_left, unread)))


def _tree_files(
    tree: Tree, folder: str, blob: Callable[[Side, int], bytes]
) -> Iterator[tuple[str, bytes | Problem]]:
    prefix = folder + "/"
    names = sorted(
        path.removeprefix(prefix)
        for path in tree
        if path.startswith(prefix)
        and path.endswith(SUFFIXES)
        and path.count("/") == prefix.count("/")
    )
    for name in names:
        yield name, tree_file(tree, prefix + name, blob)


def _left(problem: Problem) -> str:
    return f"{problem.saw}; {problem.where} and what follows is not read: {problem.fix}"


def _all_lines(
    files: Iterable[tuple[str, bytes | Problem]],
    problems: list[Problem],
    unread: list[Problem],
    *,
    any_name: bool = False,
) -> Iterator[tuple[str, bytes]]:
    """The lines of files with their places, up to what a store may have.

    `problems` gets what is wrong with files, `unread` the one at which reading ends.
    """
    room = MAX_STORE_BYTES
    for name, raw in files:
        text, fault = file_text(name, raw, any_name=any_name)
        room -= len(text)
        if room < 0:
            saw, fix = f"a store of over {MAX_STORE_BYTES:,} bytes", "fasttrack evidence gc"
            unread.append(Problem(name, saw, "fewer; this file and what follows is left", fix))
            break
        if fault is not None:
            problems.append(fault)
        else:
            yield from text_lines(name, text)


def _read_line(source: str, line: bytes, statements: list[Stored], problems: list[Problem]) -> None:
    try:
        signed = read_signed(line, source)
        statements.append(Stored(source, signed, read_statement(signed.payload, source)))
    except InputError as error:
        problems += error.problems[: max(0, MAX_PROBLEMS - len(problems))]


def _lines(
    where: Path, problems: list[Problem], suffixes: tuple[str, ...] = SUFFIXES
) -> Iterator[bytes]:
    """The lines of a folder or file that hold signed statements; bundles in their one spelling."""
    single = where.is_file()
    files = [(where.name, read_raw(where))] if single else folder_files(where, suffixes)
    any_name = single and where.name.endswith(BUNDLE_SUFFIX)
    for source, line in _all_lines(files, problems, problems, any_name=any_name):
        read: list[Stored] = []
        _read_line(source, line, read, problems)
        yield from (one.signed.bundle or line for one in read)


def _chunks(envelopes: Iterable[bytes]) -> Iterator[bytes]:
    """Contents of files, each as full as fits."""
    chunk: list[bytes] = []
    size = 0
    for line in envelopes:
        if len(line) > MAX_BYTES or b"\n" in line or not line:
            raise InputError.one("an envelope", f"{len(line):,} bytes", "one line of an envelope")
        if size + len(line) + 1 > MAX_TEXT_BYTES or len(chunk) == MAX_FILE_LINES:
            yield from _packed(chunk)
            chunk, size = [], 0
        chunk.append(line + b"\n")
        size += len(line) + 1
    if chunk:
        yield from _packed(chunk)


def _packed(lines: Sequence[bytes]) -> Iterator[bytes]:
    """One packed file, or several where these lines pack badly; a single one always fits."""
    content = pack(b"".join(lines))
    if len(content) <= MAX_FILE_BYTES:
        yield content
    else:
        half = len(lines) // 2
        yield from _packed(lines[:half])
        yield from _packed(lines[half:])


def _write_file(folder: Path, content: bytes) -> Path:
    path = folder / (hashlib.sha256(content).hexdigest() + SUFFIX)
    if not (path.is_file() and read_raw(path) == content):
        write_whole(path, content)
    return path
