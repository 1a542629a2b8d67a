# SPDX-License-Identifier: Apache-2.0
"""Files that appear whole or not at all, and what writers that were killed leave behind.

A writer writes beside, into `.<random>.partial`, and holds a lock on that file until it has its
name. The lock goes with the process, however it ends: a partial file that can be locked has no
writer any more, and whoever locks it may remove it. A writer whose file was removed between making
and locking it makes another.
"""

import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fasttrack.evidence.on_disk import sync_folder

SUFFIX = ".partial"


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file beside, makes it durable, and gives it its name; readers see no half of it.

    Raises:
        OSError: it can not be written; nothing is left of it.
    """
    with _beside(path.parent) as (descriptor, beside):
        try:
            os.fchmod(descriptor, 0o644)
            with open(descriptor, "wb", closefd=False) as file:
                file.write(content)
            os.fsync(descriptor)
            os.replace(beside, path)  # noqa: PTH105
        except BaseException:
            with suppress(FileNotFoundError):
                beside.unlink()
            raise
    sync_folder(path.parent)


def abandoned(folder: Path) -> tuple[Path, ...]:
    """The partial files of a directory that no writer holds; none when it is not there.

    Raises:
        OSError: the directory can not be listed.
    """
    return tuple(path for path in _partial(folder) if _is_abandoned(path, remove=False))


def remove_abandoned(folder: Path) -> tuple[Path, ...]:
    """Removes them, whoever else writes or removes at the same time.

    Returns:
        Those that are gone through this call.

    Raises:
        OSError: the directory can not be listed.
    """
    return tuple(path for path in _partial(folder) if _is_abandoned(path, remove=True))


def _partial(folder: Path) -> list[Path]:
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208  (a folder that is not there is told)
    except FileNotFoundError:
        return []
    return [folder / name for name in names if name.startswith(".") and name.endswith(SUFFIX)]


@contextmanager
def _beside(folder: Path) -> Iterator[tuple[int, Path]]:
    """A new partial file that this process holds, as descriptor and path."""
    while True:
        descriptor, name = tempfile.mkstemp(prefix=".", suffix=SUFFIX, dir=folder)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_same(descriptor, Path(name)):
                yield descriptor, Path(name)
                return
        finally:
            os.close(descriptor)


def _is_abandoned(path: Path, *, remove: bool) -> bool:
    """Whether nobody holds a partial file; what can not be opened is left for people."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Its writer may have ended meanwhile, and the name been given up or taken by another.
        if not (stat.S_ISREG(os.fstat(descriptor).st_mode) and _is_same(descriptor, path)):
            return False
        if remove:
            path.unlink()
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(descriptor)


def _is_same(descriptor: int, path: Path) -> bool:
    """Whether a path still names the file that was opened."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False
