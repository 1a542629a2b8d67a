# SPDX-License-Identifier: Apache-2.0
"""The files of a store, before anything in them is understood: names, bounds, lines.

A file is named by the digest of its bytes, as they lie there: compressed where its name ends with
`.gz`, and plain in older stores. A single sigstore bundle, as the tools that sign write it, is a
file too, `*.sigstore.json`, and then the whole of it is one line; no store keeps one so.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from fasttrack.change.tree import Side, Tree
from fasttrack.errors import FactUnavailable, InputError, Problem
from fasttrack.evidence.packed import MAX_TEXT_BYTES, unpack

SUFFIX = ".dsse.jsonl.gz"
"""Of the files that are written."""
PLAIN_SUFFIX = ".dsse.jsonl"
"""Of files that are not compressed; they are read, and no longer written."""
SUFFIXES = (SUFFIX, PLAIN_SUFFIX)
BUNDLE_SUFFIX = ".sigstore.json"
"""Of one bundle outside of a store."""
MAX_FILE_BYTES = 1_000_000
"""As large as a file may be that a change brings, as it lies there; see rule FT115."""
MAX_FILE_LINES = 4096
"""Of one file, so that it gives a bounded number of statements."""
_NAME = re.compile(r"[0-9a-f]{64}\.dsse\.jsonl(\.gz)?")


def named_by_digest(name: str) -> bool:
    """Whether a name says which bytes the file must have."""
    return _NAME.fullmatch(name) is not None


def is_name_of(name: str, digest: str) -> bool:
    """Whether a file with this digest may have this name."""
    return name in {digest + suffix for suffix in SUFFIXES}


def file_text(
    name: str, raw: bytes | Problem, *, any_name: bool = False
) -> tuple[bytes, Problem | None]:
    """The lines of a file, unpacked, and what is wrong with it as a whole.

    Of a file with a problem they are what had to be read to see it, and count for nothing.

    Args:
        name: the file's.
        raw: its content, or why there is none.
        any_name: the name need not be the digest.
    """
    if isinstance(raw, Problem):
        return b"", raw
    if len(raw) > MAX_FILE_BYTES:
        saw = f"{len(raw):,} bytes"
        return raw, Problem(name, saw, f"at most {MAX_FILE_BYTES:,} bytes")
    digest = hashlib.sha256(raw).hexdigest()
    if not any_name and not is_name_of(name, digest):
        fix = "git log -- the file tells who changed it; evidence is only added"
        saw = f"bytes with the digest {digest}"
        return raw, Problem(name, saw, "the bytes that it is named by", fix)
    text, fault = unpack(raw) if name.endswith(SUFFIX) else (raw, "")
    if fault:
        want = f"one whole gzip member of at most {MAX_TEXT_BYTES:,} unpacked bytes"
        return text, Problem(name, fault, want)
    lines = text.count(b"\n")
    if lines > MAX_FILE_LINES:
        return text, Problem(name, f"{lines:,} lines", f"at most {MAX_FILE_LINES:,}")
    return text, None


def text_lines(name: str, text: bytes) -> Iterator[tuple[str, bytes]]:
    """The lines of a file that is what its name says, each with file and number."""
    whole = name.endswith(BUNDLE_SUFFIX)
    lines = [text] if whole else text.removesuffix(b"\n").split(b"\n")
    for number, line in enumerate(lines, 1):
        yield f"{name}:{number}", line


def folder_files(
    folder: Path, suffixes: tuple[str, ...] = SUFFIXES
) -> Iterator[tuple[str, bytes | Problem]]:
    """Name and content of the evidence files of a directory; none when it is not there.

    Args:
        folder: the directory.
        suffixes: how the names of the files end that are asked for.

    Raises:
        InputError: it is there and can not be listed.
    """
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(suffixes))  # noqa: PTH208
    except FileNotFoundError:
        return
    except OSError as error:
        saw = error.strerror or "unreadable"
        raise InputError.one(str(folder), saw, "a folder of evidence files") from error
    for name in names:
        try:
            yield name, read_raw(folder / name)
        except InputError as error:
            yield name, error.problems[0]


def read_raw(path: Path) -> bytes:
    """The content of a plain file, and one byte more than may be when there is more.

    Raises:
        InputError: it is no plain file, or can not be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:  # noqa: PTH123  (pathlib opens no descriptors)
            return file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        saw = error.strerror or "unreadable"
        raise InputError.one(path.name, saw, "a plain file that can be read") from error


def tree_file(tree: Tree, path: str, blob: Callable[[Side, int], bytes]) -> bytes | Problem:
    """The content of an evidence file of a git tree, or why there is none."""
    name, side = path.rpartition("/")[2], tree.get(path)
    if side is None or not side.mode.startswith("100"):
        return Problem(name, "no regular file", "an evidence file")
    try:
        return blob(side, MAX_FILE_BYTES)
    except FactUnavailable as reason:
        return Problem(name, str(reason), f"a file of at most {MAX_FILE_BYTES:,} bytes, all here")
