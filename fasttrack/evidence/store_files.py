# SPDX-License-Identifier: Apache-2.0
"""The files of a store, before anything in them is understood: names, bounds, lines.

A file is named by the digest of its bytes. A single sigstore bundle, as the tools that sign write
it, is a file too, `*.sigstore.json`, and then the whole of it is one line; no store keeps one so.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from fasttrack.change.tree import Side, Tree
from fasttrack.errors import FactUnavailable, InputError, Problem

SUFFIX = ".dsse.jsonl"
BUNDLE_SUFFIX = ".sigstore.json"
"""Of one bundle outside of a store."""
MAX_FILE_BYTES = 1_000_000
"""As large as a file may be that a change brings; see rule FT115."""
MAX_FILE_LINES = 4096
"""No statement is so small that more fit."""
_NAME = re.compile(r"[0-9a-f]{64}\.dsse\.jsonl")


def named_by_digest(name: str) -> bool:
    """Whether a name says which bytes the file must have."""
    return _NAME.fullmatch(name) is not None


def file_lines(
    name: str, raw: bytes | Problem, problems: list[Problem], *, any_name: bool = False
) -> Iterator[tuple[str, bytes]]:
    """Lines with file and number; nothing of a file that is not what its name says.

    Args:
        name: the file's.
        raw: its content, or why there is none.
        problems: what is wrong with the file as a whole is added.
        any_name: the name need not be the digest.
    """
    fault = raw if isinstance(raw, Problem) else _file_fault(name, raw, any_name=any_name)
    if fault is not None:
        problems.append(fault)
    elif isinstance(raw, bytes) and name.endswith(BUNDLE_SUFFIX):
        yield f"{name}:1", raw
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


def folder_files(folder: Path) -> Iterator[tuple[str, bytes | Problem]]:
    """Name and content of the evidence files of a directory; none when it is not there.

    Raises:
        InputError: it is there and can not be listed.
    """
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(SUFFIX))  # noqa: PTH208
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
