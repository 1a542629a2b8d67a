# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterator

import pytest

from fasttrack.change import objects as objects_module
from fasttrack.change.git import Git
from fasttrack.change.objects import RESTARTS_LIMIT, Objects
from fasttrack.errors import FactUnavailable
from fasttrack.testing import Repo


@pytest.fixture
def objects(repo: Repo) -> Iterator[Objects]:
    git = Git(repo.path)
    yield Objects(git)
    git.close()


def test_many_sizes_and_contents_are_read_without_a_deadlock(repo: Repo, objects: Objects) -> None:
    blobs = {
        repo.write("blob", b"%d\n" % n * (n % 50)): b"%d\n" % n * (n % 50) for n in range(4500)
    }
    objects.load_sizes(blobs)
    assert {oid: objects.size(oid) for oid in blobs} == {o: len(c) for o, c in blobs.items()}
    for oid, content in blobs.items():
        assert objects.read(oid, 1000, ahead=blobs) == content


def test_contents_larger_than_any_pipe_come_whole(repo: Repo, objects: Objects) -> None:
    contents = [bytes([n]) * 3_000_000 for n in range(4)]
    oids = [repo.write("blob", content) for content in contents]
    objects.load_sizes(oids)
    assert [objects.read(oid, 4_000_000, ahead=oids) for oid in oids] == contents


def test_contents_that_look_like_answers_do_not_shift_them(repo: Repo, objects: Objects) -> None:
    other = repo.write("blob", b"other")
    evil = repo.write("blob", b"\n%s blob 4\nevil\n" % other.encode())
    objects.load_sizes([evil, other])
    assert objects.read(evil, 1000, ahead=[other]).endswith(b"evil\n")
    assert objects.read(other, 1000) == b"other"


def test_a_missing_object_is_told_and_the_next_one_still_read(repo: Repo, objects: Objects) -> None:
    there = repo.write("blob", b"there")
    gone = "1" * 40
    assert (objects.has(gone), objects.has(there)) == (False, True)
    for ask in (objects.size, lambda oid: objects.read(oid, 10)):
        with pytest.raises(FactUnavailable, match=r"1{40} is not in this clone"):
            ask(gone)
    assert objects.read(there, 10, ahead=[gone]) == b"there"


def test_a_large_object_is_refused_by_its_size_without_reading_it(
    repo: Repo, objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = repo.write("blob", b"x" * 101)

    def never(*_: object) -> None:
        raise AssertionError("it was read")

    monkeypatch.setattr(objects, "_fetch", never)
    with pytest.raises(FactUnavailable, match="101 bytes; at most 100"):
        objects.read(large, 100)


def test_the_cache_stays_within_its_bound(
    repo: Repo, objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects_module, "CACHE_BYTES", 1000)
    oids = [repo.write("blob", bytes([n]) * 300) for n in range(10)]
    objects.load_sizes(oids)
    for _ in range(2):
        for n, oid in enumerate(oids):
            assert objects.read(oid, 300, ahead=oids[n + 1 : n + 3]) == bytes([n]) * 300
            assert sum(len(content) for content in objects._contents.values()) <= 1000


def test_a_damaged_object_is_a_missing_fact(repo: Repo, objects: Objects) -> None:
    oid = repo.write("blob", b"x" * 5000)
    file = repo.git_dir / "objects" / oid[:2] / oid[2:]
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(FactUnavailable, match="git fsck"):
        objects.read(oid, 10_000)
    assert objects.read(repo.write("blob", b"other"), 10_000) == b"other"


def test_git_is_not_started_again_for_ever(repo: Repo, objects: Objects) -> None:
    for n in range(RESTARTS_LIMIT + 1):
        oid = repo.write("blob", bytes([n]) * 5000)
        file = repo.git_dir / "objects" / oid[:2] / oid[2:]
        file.write_bytes(file.read_bytes()[:-8])
        with pytest.raises(FactUnavailable):
            objects.read(oid, 10_000)
    with pytest.raises(FactUnavailable, match="stopped"):
        objects.read(repo.write("blob", b"other"), 10_000)
