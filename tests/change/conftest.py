# SPDX-License-Identifier: Apache-2.0
"""Real repositories for tests of the facts that are read from them."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fasttrack.change.change import Change
from fasttrack.change.read import read_change
from fasttrack.testing import Repo

RunGit = Callable[..., str]
Read = Callable[..., Change]


def put_git_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a shell script before git; `REAL` in it stands for the real one."""
    folder = tmp_path / "bin"
    folder.mkdir()
    real = shutil.which("git")
    (folder / "git").write_text("#!/bin/sh\n" + script.replace("REAL", str(real)))
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.fixture(autouse=True)
def _plain_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without configuration of their own, whoever runs the tests."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in [*os.environ]:
        if name.startswith(("GIT_", "XDG_")):
            monkeypatch.delenv(name)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """An empty repository with a working tree."""
    return Repo(tmp_path / "repo")


@pytest.fixture
def git(tmp_path: Path) -> RunGit:
    """Run git as a user would: `git("clone", a, b, cwd=...)` returns what it prints."""

    def run(*args: str | Path, cwd: Path = tmp_path) -> str:
        argv = ["git", "-c", "user.name=N", "-c", "user.email=n@example.com"]
        argv += ["-c", "protocol.file.allow=always", *map(str, args)]
        done = subprocess.run(argv, cwd=cwd, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    return run


@pytest.fixture
def read() -> Iterator[Read]:
    """`read_change` that is closed after the test."""
    opened: list[Change] = []

    def run(repo: Repo | Path, **options: object) -> Change:
        path = repo.path if isinstance(repo, Repo) else repo
        change = read_change(path, **options)  # type: ignore[arg-type]
        opened.append(change)
        return change

    yield run
    for change in opened:
        change.close()
