# SPDX-License-Identifier: Apache-2.0
"""Keeps what a test process may write to a few folders (Linux, Landlock).

Tests run as the same user as the collector, whose file modes therefore protect nothing from them:
neither the bundle, nor the tree that is measured, nor the collector itself. A process can give up
writing elsewhere for itself and all that it starts, for good, without any privilege. This module
does so and then becomes the command that it was given:

    python -I wall.py FOLDER FOLDER -- COMMAND ...

It is run by its path, so that a tree that has a package of this name can not put another in its
place. From Linux 6.12 on the command can not send signals to processes outside either. Reading is
not limited, nor is the network.

CUDA does not start where it can not name its threads, which is a write below `/proc/PID`. So beside
a GPU `/proc` stays open. What it has of other processes the wall keeps closed all the same, as it
forbids to trace them; what it has of the system only root may write, and for root these folders are
made read-only first. Where that does not work, `/proc` is closed and there is no CUDA.
"""

import ctypes
import os
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""Numbers of the system calls, the same on every architecture."""
_ABI_QUERY = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38
_WRITE_FILE = 1 << 1
_CHANGES = 0b1_1111_1111_0000
"""Removing and making directories, files, links, sockets, pipes and devices."""
_REFER, _TRUNCATE = 1 << 13, 1 << 14
"""Moving and linking between folders, from version 2 of the interface; truncating, from 3."""
_SCOPED_SIGNALS = 1 << 1
"""From version 6."""
_OPEN_ANYWAY = ("/dev",)
"""Devices, and memory that processes share; no place for anything that lasts."""
_GPU = Path("/dev/nvidiactl")
_OF_THE_SYSTEM = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs")
"""What of `/proc` is no process."""
_NEW_MOUNTS = 0x20000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 1 << 5, 1 << 12, 1 << 14, 1 << 18


def stands_around(*kept: Path) -> bool:
    """Whether there can be a wall on this system, and it would keep tests from these places."""
    if _version() < 1:
        return False
    places = [path.resolve() for path in kept]
    return not any(path.is_relative_to(open_) for path in places for open_ in _OPEN_ANYWAY)


def behind_wall(command: Sequence[str], writable: Sequence[Path]) -> list[str]:
    """The command that runs `command` where only what lies in `writable` can be written.

    Args:
        command: a program by its path, and its arguments.
        writable: folders that are there.
    """
    return [sys.executable, "-I", str(Path(__file__)), *map(str, writable), "--", *command]


def _version() -> int:
    """Version of the interface; less than 1 where there is none."""
    if sys.platform != "linux":
        return 0
    return int(ctypes.CDLL(None).syscall(_CREATE_RULESET, None, 0, _ABI_QUERY))


def _build(writable: Sequence[str]) -> None:
    """Gives up writing outside of these folders; raises OSError where that does not work."""
    version = _version()
    handled = _WRITE_FILE | _CHANGES
    handled |= _REFER if version >= 2 else 0
    handled |= _TRUNCATE if version >= 3 else 0
    # Accesses to files and to the network, and what is kept inside; the kernel knows how many.
    fields = (handled, 0, _SCOPED_SIGNALS)[: 1 + (version >= 4) + (version >= 6)]
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    rules = _call(_CREATE_RULESET, attributes, len(attributes), 0)
    allowed = dict.fromkeys((*writable, *_OPEN_ANYWAY), handled)
    if _GPU.exists() and _is_system_closed():
        allowed["/proc"] = handled & (_WRITE_FILE | _TRUNCATE)
    for folder, accesses in allowed.items():
        place = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        _call(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", accesses, place), 0)
        os.close(place)
    if ctypes.CDLL(None, use_errno=True).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "privileges can not be given up")
    _call(_RESTRICT_SELF, rules, 0)
    os.close(rules)


def _is_system_closed() -> bool:
    """Whether nothing of the system in `/proc` can be written here, having seen to it as root."""
    places = [place for place in _OF_THE_SYSTEM if Path(place).exists()]
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None)
        if libc.unshare(_NEW_MOUNTS) == 0:
            libc.mount(None, b"/", None, _RECURSIVE | _PRIVATE, None)
            for place in places:
                libc.mount(place.encode(), place.encode(), None, _BIND, None)
                libc.mount(None, place.encode(), None, _BIND | _REMOUNT | _READ_ONLY, None)
    inside = [Path("/proc/sys/kernel/core_pattern"), *map(Path, places)]
    return not any(os.access(path, os.W_OK) for path in inside if path.exists())


def _call(number: int, *arguments: bytes | int) -> int:
    result = ctypes.CDLL(None, use_errno=True).syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), f"call {number}")
    return int(result)


def _main(arguments: list[str]) -> None:
    end = arguments.index("--")
    _build(arguments[:end])
    command = arguments[end + 1 :]
    os.execv(command[0], command)  # noqa: S606  (this process becomes what it was given)


if __name__ == "__main__":
    _main(sys.argv[1:])
