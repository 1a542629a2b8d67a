# SPDX-License-Identifier: Apache-2.0
"""Run git within bounds; no other module starts processes.

In the user's repository only two questions are asked: where the objects are, and which commits the
revisions name. Everything else runs in the private repository of `fasttrack.change.isolation`.
"""

import contextlib
import fcntl
import os
import re
import resource
import shutil
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from fasttrack.change import isolation
from fasttrack.errors import FactUnavailable, InputError

MINIMUM_VERSION = (2, 38)
"""The first git whose `merge-tree` writes the merged tree."""

OUTPUT_LIMIT = 64 * 1024 * 1024
"""Bytes of standard output that one command may produce."""

TIME_LIMIT_S = 120.0
"""A last resort against inputs that make git run for ever; no ordinary command comes near."""

MEMORY_LIMIT = 240 * 1024 * 1024
"""Bytes of heap of one git process (where the system can limit them): a small object may be
stored as a delta against an enormous one."""

Process = subprocess.Popen[bytes]

_STDERR_LIMIT = 1024 * 1024
_PIPE_BYTES = 1024 * 1024
"""Wished size of the pipe that a command prints into: fewer switches between it and us. Nothing
depends on it."""


class GitFailure(FactUnavailable):
    """A git command failed; `code` is its exit status, `stderr` the first line it said."""

    def __init__(self, command: str, code: int, stderr: str) -> None:
        self.code = code
        self.stderr = stderr
        how = f"ended by signal {-code}" if code < 0 else f"failed with status {code}: {stderr}"
        super().__init__(f"git {command} {how}")


class Output:
    """What one finished command left: exit status, standard output and standard error."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code = code
        self.out = out
        self.err = err.decode("utf-8", "backslashreplace")


class Git:
    """git for one repository. Close it, or let it go: both end processes and remove the files.

    Attributes:
        repo: the directory as the user named it.
        object_format: `sha1` or `sha256`.
        shallow: ids of the commits whose parents a shallow clone left out.
        process_count: git processes started so far.
    """

    def __init__(self, repo: Path) -> None:
        """Find the object store of `repo`; InputError when there is none or git is too old."""
        self.repo = repo
        self.process_count = 0
        self._processes: list[Process] = []
        self._private = Path(tempfile.mkdtemp(prefix="fasttrack-git-"))
        self._finalizer = weakref.finalize(self, _clean, self._processes, self._private)
        self._user_env = isolation.user_environment()
        self._private_env = isolation.private_environment(self._private)
        try:
            self._check_version()
            self._objects_dir, shallow_file, self.object_format = self._locate()
            self.shallow = _read_shallow(shallow_file)
            isolation.write_repository(
                self._private, self._objects_dir, self.object_format, self.shallow
            )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End every process that still runs and remove the temporary files."""
        self._finalizer()

    def require_open(self) -> None:
        """Raise FactUnavailable after `close`."""
        if not self._finalizer.alive:
            raise FactUnavailable("the change is closed; read its facts before that")

    def run(
        self,
        *args: str,
        stdin: bytes = b"",
        accept: Sequence[int] = (0,),
        limit: int = OUTPUT_LIMIT,
    ) -> Output:
        """Run a command in the private repository.

        Args:
            args: command and arguments; never text of a contributor, only ids and options.
            stdin: bytes for its standard input.
            accept: exit statuses that are answers.
            limit: most bytes of standard output.

        Raises:
            GitFailure: another exit status, more output than `limit`, or out of time.
        """
        self.require_open()
        output = self._finish(["git", *args], self._private, self._private_env, stdin, limit)
        if output.code not in accept:
            raise GitFailure(args[0], output.code, self._first_line(output.err))
        return output

    def start(self, *args: str) -> Process:
        """Start a long-lived command in the private repository, with pipes at both ends."""
        self.require_open()
        process = self._spawn(
            ["git", *args], self._private, self._private_env, subprocess.PIPE, subprocess.DEVNULL
        )
        self._processes.append(process)
        return process

    def resolve(self, revisions: Sequence[str]) -> tuple[str | None, ...]:
        """The commit ids that revisions of the user's repository name; None where there is none.

        Raises:
            InputError: a revision that git could take for an option, that holds control
                characters, or whose name is both a tag and a branch.
        """
        for revision in revisions:
            _check_revision(revision)
        request = "".join(f"info {revision}^{{commit}}\n" for revision in revisions)
        output = self._user_run(
            "-c",
            "core.warnAmbiguousRefs=true",
            "cat-file",
            "--batch-command",
            stdin=request.encode("utf-8", "surrogateescape"),
        )
        ambiguous = re.search(r"refname '(.*)' is ambiguous", output.err)
        if ambiguous:
            name = ambiguous[1].removesuffix("^{commit}")
            raise InputError.one(
                name, "a name of several refs", "one ref", f"write refs/heads/{name} in full"
            )
        answers = output.out.decode("utf-8", "surrogateescape").splitlines()
        if output.code or len(answers) != len(revisions):
            raise self._unusable(output)
        return tuple(_commit_of(answer) for answer in answers)

    def _check_version(self) -> None:
        said = self._user_run("version").out.decode("ascii", "replace")
        match = re.search(r"git version (\d+)\.(\d+)", said)
        if not match or (int(match[1]), int(match[2])) < MINIMUM_VERSION:
            want = ".".join(str(part) for part in MINIMUM_VERSION)
            raise InputError.one("git", said.strip() or "no version", f"git {want} or newer")

    def _locate(self) -> tuple[Path, Path, str]:
        if not self.repo.is_dir():
            raise InputError.one(str(self.repo), "no directory", "a git repository")
        output = self._user_run(
            "rev-parse",
            "--path-format=absolute",
            "--git-path",
            "objects",
            "--git-path",
            "shallow",
            "--show-object-format",
        )
        lines = os.fsdecode(output.out).split("\n")
        if output.code or len(lines) != 4:
            raise self._unusable(output)
        return Path(lines[0]), Path(lines[1]), lines[2]

    def _unusable(self, output: Output) -> InputError:
        fix = ""
        if "dubious ownership" in output.err:
            fix = "git config --global --add safe.directory with this repository's path"
        saw = self._first_line(output.err) or f"git ended with status {output.code}"
        return InputError.one(str(self.repo), saw, "a git repository that git can read", fix)

    def _user_run(self, *args: str, stdin: bytes = b"") -> Output:
        where = self.repo if self.repo.is_dir() else self._private
        return self._finish(["git", *args], where, self._user_env, stdin, OUTPUT_LIMIT)

    def _first_line(self, text: str) -> str:
        line = next((line for line in text.splitlines() if not line.startswith("hint:")), "")
        return line.replace(str(self._private), "GIT_DIR").removeprefix("fatal: ")

    def _finish(
        self, argv: list[str], cwd: Path, env: dict[str, str], stdin: bytes, limit: int
    ) -> Output:
        with tempfile.TemporaryFile() as feed, tempfile.TemporaryFile() as errors:
            feed.write(stdin)
            feed.seek(0)
            process = self._spawn(argv, cwd, env, feed, errors)
            timer = threading.Timer(TIME_LIMIT_S, process.kill)
            timer.daemon = True
            timer.start()
            try:
                with process:
                    assert process.stdout is not None
                    out = process.stdout.read(limit + 1)
                    if len(out) > limit:
                        process.kill()
            finally:
                timer.cancel()
            if len(out) > limit:
                raise GitFailure(argv[1], 0, f"it prints more than {limit:,} bytes")
            errors.seek(0)
            return Output(process.returncode, out, errors.read(_STDERR_LIMIT))

    def _spawn(
        self,
        argv: list[str],
        cwd: Path,
        env: dict[str, str],
        stdin: int | IO[bytes],
        stderr: int | IO[bytes],
    ) -> Process:
        self.process_count += 1
        try:
            process = subprocess.Popen(
                argv, cwd=cwd, env=env, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr
            )
        except FileNotFoundError as error:
            raise InputError.one("git", "no git on the search path", "git 2.38 or newer") from error
        if process.stdout is not None and hasattr(fcntl, "F_SETPIPE_SZ"):
            with contextlib.suppress(OSError):  # ordinary users may have only so much of it
                fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        if hasattr(resource, "prlimit"):
            with contextlib.suppress(OSError):  # sandboxes may forbid it; the sizes still bound us
                resource.prlimit(process.pid, resource.RLIMIT_DATA, (MEMORY_LIMIT, MEMORY_LIMIT))
        return process


def _clean(processes: list[Process], private: Path) -> None:
    for process in processes:
        process.kill()
        with contextlib.suppress(BrokenPipeError), process:  # requests it never read
            pass
    processes.clear()
    shutil.rmtree(private, ignore_errors=True)


def _read_shallow(path: Path) -> frozenset[str]:
    try:
        return frozenset(path.read_text(encoding="ascii").split())
    except FileNotFoundError:
        return frozenset()


def _check_revision(revision: str) -> None:
    if not revision or revision.startswith("-") or not revision.isprintable():
        raise InputError.one(
            "revision", repr(revision), "a branch, tag or commit that does not start with '-'"
        )


def _commit_of(answer: str) -> str | None:
    words = answer.split(" ")
    return words[0] if len(words) == 3 and words[1] == "commit" else None
