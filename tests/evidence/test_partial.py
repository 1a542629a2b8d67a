# SPDX-License-Identifier: Apache-2.0
"""Partial files: those of writers that are gone are removed, and no writer loses its own."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fasttrack.evidence.partial import abandoned, remove_abandoned, write_whole


def left_behind(folder: Path, name: str = ".abc.partial") -> Path:
    path = folder / name
    path.write_bytes(b"half")
    return path


def test_what_is_written_is_whole_and_nothing_else_is_there(tmp_path: Path) -> None:
    write_whole(tmp_path / "x", b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_bytes() == b"whole"
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o644


def test_a_partial_file_without_a_writer_is_listed_and_removed_once(tmp_path: Path) -> None:
    path = left_behind(tmp_path)
    assert abandoned(tmp_path) == (path,)
    assert path.exists()
    assert remove_abandoned(tmp_path) == (path,)
    assert remove_abandoned(tmp_path) == abandoned(tmp_path) == ()
    assert [*tmp_path.iterdir()] == []


def test_a_partial_file_that_its_writer_holds_stays(tmp_path: Path) -> None:
    path = left_behind(tmp_path)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert abandoned(tmp_path) == remove_abandoned(tmp_path) == ()
        assert path.exists()
    assert remove_abandoned(tmp_path) == (path,)


@pytest.mark.parametrize("name", ["abc.partial", ".abc.partial.txt", ".partially", "x.dsse.jsonl"])
def test_files_of_other_names_stay(tmp_path: Path, name: str) -> None:
    left_behind(tmp_path, name)
    assert abandoned(tmp_path) == remove_abandoned(tmp_path) == ()


def test_links_pipes_and_folders_stay_and_nobody_waits_for_them(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"kept")
    (tmp_path / ".link.partial").symlink_to(elsewhere)
    os.mkfifo(tmp_path / ".pipe.partial")
    (tmp_path / ".folder.partial").mkdir()
    before = sorted(tmp_path.iterdir())
    assert abandoned(tmp_path) == remove_abandoned(tmp_path) == ()
    assert sorted(tmp_path.iterdir()) == before
    assert elsewhere.read_bytes() == b"kept"


def test_a_folder_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert abandoned(tmp_path / "nothing") == remove_abandoned(tmp_path / "nothing") == ()


Flock = Callable[..., None]


def at_the_first_lock(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Lets somebody else act right before the first file is locked."""
    flock: Flock = fcntl.flock
    acts = [act]

    def locked(descriptor: int, operation: int) -> None:
        if acts:
            acts.pop()()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", locked)


def test_a_writer_whose_file_is_removed_before_it_is_locked_makes_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_the_first_lock(monkeypatch, lambda: remove_abandoned(tmp_path))
    write_whole(tmp_path / "x", b"whole")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("x", b"whole")]


def test_a_collector_whose_find_gets_its_name_meanwhile_removes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = left_behind(tmp_path)
    at_the_first_lock(monkeypatch, lambda: path.rename(tmp_path / "x"))
    assert remove_abandoned(tmp_path) == ()
    assert (tmp_path / "x").read_bytes() == b"half"


def test_a_collector_whose_find_is_another_file_meanwhile_leaves_that_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = left_behind(tmp_path)

    def replaced() -> None:
        other = tmp_path / "other"
        other.write_bytes(b"of another writer")
        other.rename(path)

    at_the_first_lock(monkeypatch, replaced)
    assert remove_abandoned(tmp_path) == ()
    assert path.read_bytes() == b"of another writer"


@pytest.mark.parametrize("step", ["fchmod", "fsync", "replace"])
def test_a_writer_that_fails_leaves_neither_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, step, full)
        with pytest.raises(OSError, match="No space left"):
            write_whole(tmp_path / "x", b"whole")
    assert [*tmp_path.iterdir()] == []
