# SPDX-License-Identifier: Apache-2.0
"""A patch file as a change: applied to a temporary index, exactly where it says, or refused."""

import re
from collections.abc import Iterator
from pathlib import Path

from fasttrack.change.git import Git, GitFailure, Output
from fasttrack.errors import InputError, Problem

PATCH_LIMIT = 16 * 1024 * 1024
"""Bytes of a patch file; to apply it, git takes up to eight times as much memory."""

_CHECKING = re.compile(r"Checking patch (.*)\.\.\.\Z", re.DOTALL)
_MOVED = re.compile(r"Hunk #(\d+) succeeded at (\d+) \((offset -?\d+ lines?)\)\.?\Z")


def apply_patch(git: Git, patch: Path, onto: str) -> str:
    """Apply a patch file and return the id of a commit that holds the result.

    The commit has `onto` as its only parent and a fixed author, date and message, so the same
    patch gives the same id. It exists only in the temporary object store.

    Args:
        git: the repository.
        patch: a file as `git diff`, `git format-patch` or `diff -u` write it.
        onto: id of the commit to apply it to.

    Raises:
        InputError: unreadable or too large, binary, does not apply, or applies only at other
            lines than it says; names the paths and hunks.
    """
    content = _read(patch)
    try:
        git.run("read-tree", onto)
    except GitFailure as error:
        fix = "git fetch --refetch --no-filter"
        raise InputError.one("--onto", str(error), "a commit whose tree is here", fix) from error
    options = ("--cached", "--apply", "--numstat", "-z", "--verbose", "--whitespace=nowarn")
    output = git.run("apply", *options, "-", stdin=content, accept=(0, 1, 128))
    problems = [*_failures(patch, output), *_binary(patch, output), *_moved(patch, output)]
    if problems:
        raise InputError(problems)
    tree = git.run("write-tree", "--missing-ok").out.decode("ascii").strip()
    return git.run("commit-tree", "-p", onto, "-m", "patch", tree).out.decode("ascii").strip()


def _read(patch: Path) -> bytes:
    try:
        with patch.open("rb") as file:
            content = file.read(PATCH_LIMIT + 1)
    except OSError as error:
        raise InputError.one(str(patch), error.strerror or "an error", "a patch file") from error
    if len(content) > PATCH_LIMIT:
        raise InputError.one(str(patch), "a larger file", f"at most {PATCH_LIMIT:,} bytes")
    return content


def _failures(patch: Path, output: Output) -> Iterator[Problem]:
    if output.code:
        errors = [line for line in output.err.splitlines() if line.startswith(("error:", "fatal:"))]
        for line in errors or [f"git apply ended with status {output.code}"]:
            saw = line.partition(": ")[2] or line
            fix = "git diff --text" if "binary" in saw else "make the patch from the --onto commit"
            yield Problem(str(patch), saw, "a text patch that applies to the --onto commit", fix)


def _binary(patch: Path, output: Output) -> Iterator[Problem]:
    for record in output.out.decode("utf-8", "surrogateescape").split("\0"):
        added, _, rest = record.partition("\t")
        if added == "-":
            path = rest.partition("\t")[2]
            yield Problem(str(patch), f"a binary patch of {path}", "text", "push a branch instead")


def _moved(patch: Path, output: Output) -> Iterator[Problem]:
    """Hunks that git put elsewhere than the patch says: nobody has read them there."""
    path = ""
    for line in output.err.splitlines():
        checking, moved = _CHECKING.search(line), _MOVED.search(line)
        if checking:
            path = checking[1]
        elif moved:
            saw = f"hunk {moved[1]} of {path} fits only at line {moved[2]} ({moved[3]})"
            want = "hunks that apply exactly where they say"
            yield Problem(str(patch), saw, want, "make the patch from the --onto commit")
