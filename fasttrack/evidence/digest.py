# SPDX-License-Identifier: Apache-2.0
"""`files/v1`: one digest of a set of files, the same in every clone of every object format.

SHA-256 over one record per file, in byte order of the paths:

    <mode> <SHA-256 of the raw blob> <path> NUL

The mode is git's, six octal digits. No filter, line-end conversion or encoding takes part. A link
is refused: what it stands for is elsewhere, and may be anything.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from fasttrack.change.tree import GITLINK_MODE, SYMLINK_MODE, path_bytes
from fasttrack.errors import FactUnavailable

_LINKS = {SYMLINK_MODE: "a symbolic link", GITLINK_MODE: "a submodule commit"}


@dataclass(frozen=True)
class InputFile:
    """One file that evidence depends on.

    Attributes:
        path: `/`-separated; bytes that are not UTF-8 are surrogate escapes.
        mode: six octal digits.
        sha256: of the raw blob, lower-case hexadecimal.
        reason: why it is in; part of no digest.
    """

    path: str
    mode: str
    sha256: str
    reason: str


def files_digest(files: Iterable[InputFile]) -> str:
    """The digest `files/v1`, lower-case hexadecimal, whatever the order of `files`.

    Raises:
        FactUnavailable: one of them is a link.
    """
    return hashlib.sha256(records(files)).hexdigest()


def records(files: Iterable[InputFile]) -> bytes:
    """What `files/v1` is the digest of; raises as `files_digest` does."""
    found = bytearray()
    for file in sorted(files, key=lambda file: path_bytes(file.path)):
        require_regular(file.path, file.mode)
        found += f"{file.mode} {file.sha256} ".encode("ascii") + path_bytes(file.path) + b"\0"
    return bytes(found)


def require_regular(path: str, mode: str) -> None:
    """Raises FactUnavailable, with the path, for anything but a regular file."""
    if not mode.startswith("100"):
        what = _LINKS.get(mode, f"of mode {mode}")
        raise FactUnavailable(f"{path} is {what}; evidence binds to regular files only")
