# SPDX-License-Identifier: Apache-2.0
"""Takes the network from a process, and bounds what it may use (Linux, seccomp).

A process can forbid itself and all that it starts a system call for good, without any privilege.
This module does so with all calls that open a socket, those that could do it in their stead, those
that reach into other processes, and those that leave something in the kernel. Calls that change
the mode, owner, times or attributes of a file do nothing, as the wall around folders knows none of
them. It gives up every capability, which for root is what reads another process; it sets limits on
processor time, memory, files and processes; and then it becomes the command that it was given:

    python -I box.py CPU_S MEMORY_BYTES FILE_BYTES PROCESSES -- COMMAND ...

It is run by its path, as `fasttrack/evidence/wall.py` is, which limits where may be written.
"""

import ctypes
import errno
import os
import platform
import resource
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
"""Instructions of the filter: load a word, jump if equal, jump if at least, return."""
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
_DONE = _REFUSE
"""Refused with the number of no error: the caller goes on, and nothing has happened."""
_OTHER_CALLS = 0x40000000
"""Numbers of a second interface on x86-64, by which every call could be reached again."""


@dataclass(frozen=True)
class _Machine:
    """Numbers of one kind of machine.

    Attributes:
        name: the machine's in the kernel.
        refused: calls that fail.
        nothing: calls that succeed and do nothing.
        attributes: calls that say that no file system here has such a thing.
        own: calls that a process may make on itself alone.
    """

    name: int
    refused: tuple[int, ...]
    nothing: tuple[int, ...]
    attributes: tuple[int, ...]
    own: tuple[int, ...]


# Numbers of system calls. `refused`: socket, ptrace, io_uring_setup, process_vm_writev, bpf,
# unshare, mount, setns, pidfd_getfd, userfaultfd, process_madvise; setpriority, ioprio_set,
# migrate_pages, move_pages; shmget, shmat, shmctl, semget, semop, semctl, semtimedop, msgget,
# msgsnd, msgrcv, msgctl, mq_open, mq_unlink; add_key, request_key, keyctl. `nothing`: chmod,
# fchmod, fchmodat, fchmodat2, chown, fchown, lchown, fchownat, utime, utimes, futimesat,
# utimensat, as far as a machine has them. `attributes`: setxattr, lsetxattr, fsetxattr,
# removexattr, lremovexattr, fremovexattr, setxattrat, removexattrat. `own`, whose first argument
# is a process: prlimit64, sched_setaffinity, sched_setscheduler, sched_setparam, sched_setattr.
_MACHINES = {
    "x86_64": _Machine(
        0xC000003E,
        refused=(
            *(41, 101, 425, 311, 321, 272, 165, 308, 438, 323, 440, 141, 251, 256, 279),
            *(29, 30, 31, 64, 65, 66, 220, 68, 69, 70, 71, 240, 241, 248, 249, 250),
        ),
        nothing=(90, 91, 268, 452, 92, 93, 94, 260, 132, 235, 261, 280),
        attributes=(188, 189, 190, 197, 198, 199, 463, 466),
        own=(302, 203, 144, 142, 314),
    ),
    "aarch64": _Machine(
        0xC00000B7,
        refused=(
            *(198, 117, 425, 271, 280, 97, 40, 268, 438, 282, 440, 140, 30, 238, 239),
            *(194, 196, 195, 190, 193, 191, 192, 186, 189, 188, 187, 180, 181, 217, 218, 219),
        ),
        nothing=(52, 53, 452, 55, 54, 88),
        attributes=(5, 6, 7, 14, 15, 16, 463, 466),
        own=(261, 122, 119, 118, 274),
    ),
}
_ARGUMENT = 16
"""Where the first argument of a call begins."""
_CAPABILITIES = 0x20080522
"""Version of the interface."""

_THREADS = 16
"""For each process that there may be."""


@dataclass(frozen=True)
class Bounds:
    """What one run may use.

    Attributes:
        cpu_s: seconds of processor time, of each process.
        memory_bytes: memory of each process, and what all together may hold at a time.
        file_bytes: the largest file.
        processes: how many there may be at a time.
    """

    cpu_s: int
    memory_bytes: int = 16 << 30
    file_bytes: int = 1 << 30
    processes: int = 256


def can_be_boxed() -> bool:
    """Whether this system can take the network from a process."""
    return sys.platform == "linux" and platform.machine() in _MACHINES


def in_box(command: Sequence[str], bounds: Bounds) -> list[str]:
    """The command that runs `command`, a program by its path and its arguments, in bounds."""
    numbers = (bounds.cpu_s, bounds.memory_bytes, bounds.file_bytes, bounds.processes)
    return [sys.executable, "-I", str(Path(__file__)), *map(str, numbers), "--", *command]


def _limit(cpu_s: int, memory: int, file: int, processes: int) -> None:
    wanted = (
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_FSIZE, file),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 4096),
        # The kernel counts the user's tasks, not ours, and threads with them; for root it counts
        # nothing. Whoever started us counts as well, processes alone.
        (resource.RLIMIT_NPROC, _tasks_of(os.getuid()) + _THREADS * processes),
    )
    for which, limit in wanted:
        hard = resource.getrlimit(which)[1]
        bound = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(which, (bound, bound))


def _tasks_of(user: int) -> int:
    """Processes and threads of a user."""
    count = 0
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdigit() and folder.stat().st_uid == user:
                count += len(os.listdir(folder / "task"))  # noqa: PTH208  (only counted)
    return count


def _forbid() -> None:
    """Gives up the calls; raises OSError where that does not work."""
    machine = _MACHINES[platform.machine()]
    program = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, machine.name),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, 0, 1, _OTHER_CALLS),
        (_RETURN, 0, 0, _KILL),
    ]
    answers = (
        (machine.refused, _REFUSE | errno.EACCES),
        (machine.nothing, _DONE),
        (machine.attributes, _REFUSE | errno.EOPNOTSUPP),
    )
    for calls, answer in answers:
        for call in calls:
            program += [(_EQUAL, 0, 1, call), (_RETURN, 0, 0, answer)]
    for call in machine.own:
        program += [
            (_EQUAL, 0, 4, call),
            (_LOAD, 0, 0, _ARGUMENT),
            (_EQUAL, 0, 1, 0),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _REFUSE | errno.EACCES),
        ]
    program.append((_RETURN, 0, 0, _ALLOW))
    packed = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    head = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(packed)))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((_NO_NEW_PRIVILEGES, 1, 0, 0, 0), (_SET_SECCOMP, _FILTER, head, 0, 0)):
        if libc.prctl(*arguments):
            raise OSError(ctypes.get_errno(), "system calls can not be given up")


def _give_up_capabilities() -> None:
    """For good, as no program that is started now can gain any; raises OSError otherwise."""
    libc = ctypes.CDLL(None, use_errno=True)
    head = ctypes.create_string_buffer(struct.pack("=II", _CAPABILITIES, 0))
    none = ctypes.create_string_buffer(struct.pack("=6I", 0, 0, 0, 0, 0, 0))
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.capset(head, none):
        raise OSError(ctypes.get_errno(), "capabilities can not be given up")


def _main(arguments: list[str]) -> None:
    cpu_s, memory, file, processes, dashes, *command = arguments
    if dashes != "--":
        raise SystemExit("box.py: numbers, --, command")
    _limit(int(cpu_s), int(memory), int(file), int(processes))
    _give_up_capabilities()
    _forbid()
    os.execv(command[0], command)  # noqa: S606  (this process becomes what it was given)


if __name__ == "__main__":
    _main(sys.argv[1:])
