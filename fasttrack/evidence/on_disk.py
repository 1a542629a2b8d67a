# SPDX-License-Identifier: Apache-2.0
"""Files on disk: whether one is what git has, told without git; and names that last.

What is compared is what git records: the raw bytes, and of the mode the owner's executable bit.
"""

import hashlib
import os
import stat
from collections.abc import Iterable
from io import BufferedReader
from pathlib import Path

from fasttrack.errors import InputError
from fasttrack.evidence.named import folders_above


def difference(root: Path, path: str, mode: str | None, sha256: str) -> str:
    """How a file differs from the one that is wanted, in words; empty when it does not.

    Args:
        root: the directory that the path is relative to.
        path: `/`-separated, without empty, `.` or `..` segments.
        mode: as git records it, six octal digits; None when any will do.
        sha256: of the raw bytes, lower-case hexadecimal.
    """
    if link := _link(root, path):
        return "a symbolic link" if link == path else f"a symbolic link at {link}"
    try:
        # Neither through a link that came meanwhile, nor waiting for the other end of a pipe.
        handle = os.open(root / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return "no such file"
    except OSError as error:
        return error.strerror or "unreadable"
    with open(handle, "rb") as file:  # noqa: PTH123  (pathlib opens no handles)
        return _content_difference(file, mode, sha256)


def open_regular(path: Path) -> BufferedReader:
    """A regular file to read, which may be behind a link; never waits for the other end of a pipe.

    Raises:
        OSError: there is none, or it can not be opened.
        InputError: it is something else than a file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError.one(str(path), "no plain file", "a file that can be read to its end")
    return open(descriptor, "rb")  # noqa: PTH123  (pathlib opens no descriptors)


def _link(root: Path, path: str) -> str:
    """The first part of a path that is a symbolic link; git would find nothing behind it."""
    parts = path.split("/")
    starts = ("/".join(parts[:end]) for end in range(1, len(parts) + 1))
    return next((start for start in starts if (root / start).is_symlink()), "")


def _content_difference(file: BufferedReader, mode: str | None, sha256: str) -> str:
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode):
        return "no regular file"
    if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
        return "other bytes"
    executable = bool(found.st_mode & stat.S_IXUSR)
    if mode is not None and executable != bool(int(mode, 8) & stat.S_IXUSR):
        return "an executable file" if executable else "a file that is not executable"
    return ""


def conftests(root: Path, tests: Iterable[str]) -> list[str]:
    """Every `conftest.py`, whatever it is, that lies beside or above one of these test files.

    Args:
        root: the directory that the paths are relative to, and the highest that is looked at.
        tests: `/`-separated, without empty, `.` or `..` segments.
    """
    above = {f"{folder}conftest.py" for path in tests for folder in folders_above(path)}
    return [path for path in sorted(above) if os.path.lexists(root / path)]


def sync_folder(folder: Path) -> None:
    """Makes the names in a directory durable; what they name is synced apart."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
