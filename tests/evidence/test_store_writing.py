# SPDX-License-Identifier: Apache-2.0
"""Writing evidence files: nothing is lost, nothing is half there, nothing is left behind."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasttrack.errors import InputError
from fasttrack.evidence import packed as packing
from fasttrack.evidence import store, store_files
from fasttrack.evidence.dsse import read_envelope
from fasttrack.evidence.packed import unpack
from fasttrack.evidence.partial import remove_abandoned
from fasttrack.evidence.sigstore_bundle import MAX_BYTES, read_bundle
from fasttrack.evidence.store import Contents, merge, read_file, read_folder, write
from fasttrack.evidence.store_files import (
    MAX_FILE_LINES,
    PLAIN_SUFFIX,
    SUFFIX,
    file_text,
    folder_files,
    text_lines,
)
from fasttrack.vocabulary import Kind
from tests.evidence.sigstore_instance import Instance
from tests.evidence.stores import CONTENT, LINES, line, named, put, rows
from tests.evidence.strategies import good


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    paths = write(tmp_path / "new" / "evidence", LINES)
    contents = read_folder(tmp_path / "new" / "evidence")
    assert rows(contents) == [1, 2, 3, 4, 5]
    assert contents.problems == ()
    (path,) = paths
    assert path.name == named(path.read_bytes())
    assert contents.statements[2].source == f"{path.name}:3"
    assert contents.statements[2].signed == read_envelope(LINES[2], "x")
    assert path.stat().st_mode & 0o777 == 0o644


def test_writing_the_same_again_changes_nothing(tmp_path: Path) -> None:
    first = write(tmp_path, LINES)
    assert write(tmp_path, [*LINES, *LINES]) == first
    assert sorted(tmp_path.iterdir()) == sorted(first)


def test_large_stores_are_split_below_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [line(number) for number in range(100)]
    limit = 10 * len(lines[0])
    monkeypatch.setattr(store, "MAX_TEXT_BYTES", limit)
    paths = write(tmp_path, lines)
    sizes = [len(unpack(path.read_bytes())[0]) for path in paths]
    assert len(paths) > 9
    assert max(sizes) <= limit
    assert min(sizes[:-1]) > limit * 0.8
    assert sorted(rows(read_folder(tmp_path)), key=str) == sorted(range(100), key=str)


def lines_of(folder: Path) -> list[bytes]:
    """Every line of a store, whatever it is; each file keeps every bound."""
    found: list[bytes] = []
    for name, raw in folder_files(folder):
        text, fault = file_text(name, raw)
        assert fault is None
        found += [line for _, line in text_lines(name, text)]
    return found


def test_lines_that_pack_badly_are_split_below_the_limit_too(tmp_path: Path) -> None:
    drawn = random.Random(0)
    lines = [drawn.randbytes(300_000).replace(b"\n", b" ") for _ in range(7)]
    assert len(write(tmp_path, lines)) > 2
    assert sorted(lines_of(tmp_path)) == sorted(lines)


def test_no_file_has_more_lines_than_are_read(tmp_path: Path) -> None:
    lines = [b"%d" % number for number in range(2 * MAX_FILE_LINES + 1)]
    assert len(write(tmp_path, lines)) == 3
    assert sorted(lines_of(tmp_path)) == sorted(lines)


LINE = st.binary(min_size=1, max_size=300).map(lambda raw: raw.replace(b"\n", b" "))


@settings(max_examples=40)
@given(st.lists(LINE, max_size=12), st.integers(310, 900), st.integers(330, 900))
def test_any_lines_are_read_again_each_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], unpacked: int, packed: int
) -> None:
    folder = tmp_path_factory.mktemp("store")
    with pytest.MonkeyPatch.context() as patch:
        for module in (store, store_files):
            patch.setattr(module, "MAX_FILE_BYTES", packed)
        patch.setattr(store, "MAX_TEXT_BYTES", unpacked)
        patch.setattr(packing, "MAX_TEXT_BYTES", unpacked)
        paths = write(folder, lines)
        assert sorted(lines_of(folder)) == sorted(set(lines))
    assert all(path.name == named(path.read_bytes()) for path in paths)
    assert len(paths) == len({*folder.iterdir()})


@pytest.mark.parametrize("bad", [b"", b"a\nb", b"x" * (MAX_BYTES + 1)])
def test_what_is_no_line_is_not_written(tmp_path: Path, bad: bytes) -> None:
    with pytest.raises(InputError):
        write(tmp_path / "evidence", [LINES[0], bad])
    assert not (tmp_path / "evidence").exists()


def test_merging_takes_what_is_new_and_nothing_twice(tmp_path: Path) -> None:
    write(tmp_path / "mine", LINES[:3])
    write(tmp_path / "yours", LINES[1:4])
    write(tmp_path / "theirs", LINES[3:])
    new, problems = merge(tmp_path / "mine", [tmp_path / "yours", tmp_path / "theirs"])
    assert problems == ()
    assert len(new) == 1
    assert sorted(rows(read_folder(tmp_path / "mine")), key=str) == [1, 2, 3, 4, 5]
    assert merge(tmp_path / "mine", [tmp_path / "yours", tmp_path / "theirs"]) == ((), ())


def test_what_only_plain_files_hold_is_written_again_when_asked(tmp_path: Path) -> None:
    plain = put(tmp_path, b"".join(one + b"\n" for one in [*LINES[1:4], BUNDLE]))
    packed = write(tmp_path, LINES[:2])
    assert merge(tmp_path, []) == ((), ())
    (new,), problems = merge(tmp_path, [], pack_plain=True)
    assert problems == ()
    assert rows(read_file(new)) == [3, 4, 9]
    assert {*tmp_path.iterdir()} == {plain, new, *packed}
    assert merge(tmp_path, [], pack_plain=True) == ((), ())


def test_what_can_not_be_written_again_is_named(tmp_path: Path) -> None:
    plain = put(tmp_path, LINES[0] + b"\n{}\n")
    new, problems = merge(tmp_path, [], pack_plain=True)
    assert rows(read_file(new[0])) == [1]
    assert {problem.where.split(": ")[0] for problem in problems} == {f"{plain.name}:2"}


def test_merging_leaves_out_what_can_not_be_read(tmp_path: Path) -> None:
    put(tmp_path / "yours", CONTENT, "0" * 64 + PLAIN_SUFFIX)
    put(tmp_path / "yours", b"{}\n" + LINES[0] + b"\n")
    new, problems = merge(tmp_path / "mine", [tmp_path / "yours"])
    assert rows(read_folder(tmp_path / "mine")) == [1]
    assert len(new) == 1
    assert len({problem.where.split(":")[0] for problem in problems}) == 2


WRITER = """
import sys
from pathlib import Path
from fasttrack.evidence.store import write
folder, count = Path(sys.argv[1]), int(sys.argv[2])
lines = sys.stdin.buffer.read().splitlines()
for start in range(0, len(lines), count):
    write(folder, lines[start : start + count])
"""


def test_two_writers_and_a_collector_at_once_lose_nothing(tmp_path: Path) -> None:
    lines = [line(number) for number in range(60)]
    halves = [lines[:40], lines[20:]]
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), "2"], stdin=subprocess.PIPE)
        for _ in halves
    ]
    for writer, half in zip(writers, halves, strict=True):
        assert writer.stdin is not None
        writer.stdin.write(b"\n".join(half))
        writer.stdin.close()
    while any(writer.poll() is None for writer in writers):
        remove_abandoned(tmp_path)
    assert [writer.wait() for writer in writers] == [0, 0]
    contents = read_folder(tmp_path)
    assert contents.problems == ()
    assert set(rows(contents)) == set(range(60))
    assert all(path.name.endswith(SUFFIX) for path in tmp_path.iterdir())


KILLED = """
import os, signal, sys
def die(*args):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(os, sys.argv[3], die)
"""


@pytest.mark.parametrize("step", ["fstat", "fchmod", "fsync", "replace"])
def test_a_writer_that_is_killed_leaves_nothing_that_is_read_and_the_next_one_clears_it(
    tmp_path: Path, step: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED + WRITER, str(tmp_path), "5", step],
        input=b"\n".join(LINES),
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert read_folder(tmp_path) == Contents((), ())
    (left,) = tmp_path.iterdir()
    assert left.name.endswith(".partial")
    written = write(tmp_path, LINES)
    assert tuple(tmp_path.iterdir()) == written
    assert rows(read_folder(tmp_path)) == [1, 2, 3, 4, 5]


def test_a_writer_that_fails_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left"):
        write(tmp_path, LINES)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_damaged_is_written_anew(tmp_path: Path) -> None:
    (path,) = write(tmp_path, LINES)
    path.write_bytes(b"damaged")
    write(tmp_path, LINES)
    assert rows(read_folder(tmp_path)) == [1, 2, 3, 4, 5]


# Sigstore bundles

STATEMENT = good(Kind.KERNEL_TEST, values={"unit": "kda", "rows": 9})
BUNDLE = Instance().bundle(STATEMENT)
LAID_OUT = json.dumps(json.loads(BUNDLE), indent=2).encode()


def test_a_bundle_is_a_line_among_others(tmp_path: Path) -> None:
    write(tmp_path, [*LINES[:2], BUNDLE])
    contents = read_folder(tmp_path)
    assert contents.problems == ()
    assert rows(contents) == [1, 2, 9]
    assert contents.statements[2].signed == read_bundle(BUNDLE, "x")


def test_merging_takes_a_bundle_s_file_and_writes_it_as_one_line(tmp_path: Path) -> None:
    bundle = put(tmp_path / "signed", LAID_OUT, "kda.sigstore.json")
    (path,), problems = merge(tmp_path / "mine", [bundle])
    assert problems == ()
    assert unpack(path.read_bytes()) == (BUNDLE + b"\n", "")
    assert merge(tmp_path / "mine", [bundle]) == ((), ())


def test_a_bundle_s_file_is_read_by_itself_and_is_no_file_of_a_store(tmp_path: Path) -> None:
    bundle = put(tmp_path, LAID_OUT, "kda.sigstore.json")
    assert rows(read_file(bundle)) == [9]
    assert read_folder(tmp_path) == Contents((), ())


def test_what_is_no_bundle_in_a_bundle_s_file_is_left_out(tmp_path: Path) -> None:
    bundle = put(tmp_path, LAID_OUT + LAID_OUT, "kda.sigstore.json")
    new, problems = merge(tmp_path / "mine", [bundle])
    assert new == ()
    assert [problem.where for problem in problems] == ["kda.sigstore.json:1"]
