# SPDX-License-Identifier: Apache-2.0
"""`files/v1` against two other formulations: bytes picked one by one, and ten lines of shell."""

import hashlib
import os
import subprocess
from pathlib import Path
from random import Random
from shutil import which

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.change.read import read_revision
from fasttrack.errors import FactUnavailable
from fasttrack.evidence.digest import InputFile, files_digest

SHELL = Path(__file__).with_name("files_v1.sh")
MODES = ("100644", "100755", "100664")
PATHS = [
    b"a/x.py", b"a-b.py", b"a.b.py", b"a", b"with blank.py", b" blank in front", b"blank behind ",
    "\u00e9\u4e2d.py".encode(), b"\xff\xfe.py", b"tab\there", b"line\nhere", b"'quote\"\\", b"*",
    b"Z.py", b"deep/er/and/deeper.py",
]  # fmt: skip
"""Of which `a` is left out where it would be both a file and a folder."""
NAMES = st.binary(min_size=1, max_size=12).filter(lambda name: b"\0" not in name)
FILES = st.dictionaries(
    st.sampled_from(PATHS) | NAMES,
    st.tuples(st.sampled_from(MODES), st.binary(max_size=20)),
    max_size=8,
)


def input_file(path: bytes, mode: str, content: bytes, reason: str = "") -> InputFile:
    text = path.decode("utf-8", "surrogateescape")
    return InputFile(text, mode, hashlib.sha256(content).hexdigest(), reason)


def digest_of(files: dict[bytes, tuple[str, bytes]]) -> str:
    return files_digest(input_file(path, *file) for path, file in files.items())


def by_hand(files: dict[bytes, tuple[str, bytes]]) -> str:
    """The definition on bytes alone: take the smallest path that is left, until none is."""
    left, records = dict(files), bytearray()
    while left:
        smallest = None
        for path in left:
            if smallest is None or list(path) < list(smallest):
                smallest = path
        assert smallest is not None
        mode, content = left.pop(smallest)
        content_digest = hashlib.sha256(content).digest().hex().encode()
        records += b"%06o %b %b\x00" % (int(mode, 8), content_digest, smallest)
    return hashlib.sha256(bytes(records)).hexdigest()


@given(FILES, st.randoms(use_true_random=False))
def test_the_digest_is_its_definition_whatever_the_order(
    files: dict[bytes, tuple[str, bytes]], random: Random
) -> None:
    records = [input_file(path, *file) for path, file in files.items()]
    random.shuffle(records)
    assert files_digest(records) == by_hand(files)


@given(FILES.filter(bool), st.sampled_from(["mode", "content", "path", "gone"]), st.data())
def test_one_edit_of_one_file_changes_the_digest(
    files: dict[bytes, tuple[str, bytes]], edit: str, data: st.DataObject
) -> None:
    path = data.draw(st.sampled_from(sorted(files)))
    after = dict(files)
    mode, content = after.pop(path)
    if edit == "mode":
        after[path] = (MODES[MODES.index(mode) - 1], content)
    elif edit == "content":
        after[path] = (mode, content + b"#")
    elif edit == "path":
        after[path + b"~" * 13] = (mode, content)  # no name above ends so
    assert digest_of(files) != digest_of(after)


def test_the_reason_is_in_no_digest() -> None:
    assert files_digest([input_file(b"a", "100644", b"", "data")]) == files_digest(
        [input_file(b"a", "100644", b"", "imported by b")]
    )


@pytest.mark.parametrize(
    ("mode", "what"),
    [("120000", "a symbolic link"), ("160000", "a submodule commit"), ("040000", "of mode 040000")],
)
def test_what_is_no_regular_file_is_refused_by_name(mode: str, what: str) -> None:
    files = [input_file(b"a", "100644", b""), input_file(b"b/link", mode, b"")]
    with pytest.raises(FactUnavailable, match=f"^b/link is {what}"):
        files_digest(files)


def git(repo: Path, *arguments: str) -> None:
    """git as a person runs it, without the person's configuration."""
    identity = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")}  # fmt: skip
    environment = {**os.environ, **identity, "GIT_CONFIG_GLOBAL": os.devnull, "HOME": str(repo)}
    subprocess.run(["git", *arguments], cwd=repo, env=environment, check=True, capture_output=True)


def scratch(where: Path, object_format: str) -> Path:
    """A repository with paths of every sort, some executable, under attributes that convert."""
    where.mkdir()
    git(where, "init", "-q", f"--object-format={object_format}")
    for number, path in enumerate(p for p in PATHS if p != b"a"):
        file = Path(os.fsdecode(bytes(where) + b"/" + path))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"line\r\n" * number)
        file.chmod(0o755 if number % 3 else 0o644)
    git(where, "add", "-A")
    (where / ".gitattributes").write_text("* text eol=crlf\n")
    git(where, "add", "-f", ".gitattributes")
    git(where, "commit", "-qm", "all")
    return where


def shell_digest(repo: Path, *paths: str, bin_: Path | None = None) -> str:
    """What the shell says, in a locale that is not the one of bytes."""
    argv = ["bash", str(SHELL), "HEAD", *paths]
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    if bin_ is not None:
        environment["PATH"] = f"{bin_}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        argv, cwd=repo, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def our_digest(repo: Path, *folders: str) -> str:
    with read_revision(repo) as change:
        files = []
        for path in change.base:
            side = change.base.get(path)
            if side is not None and (not folders or path.startswith(folders)):
                sha256 = hashlib.sha256(change.blob(side)).hexdigest()
                files.append(InputFile(path, side.mode, sha256, ""))
    return files_digest(files)


def test_ten_lines_of_shell_give_the_same_digest_in_both_object_formats(tmp_path: Path) -> None:
    assert len(SHELL.read_text().splitlines()) - 2 <= 10
    digests = set()
    for object_format in ("sha1", "sha256"):
        repo = scratch(tmp_path / object_format, object_format)
        digests |= {shell_digest(repo), our_digest(repo)}
        assert shell_digest(repo, "a", "deep") == our_digest(repo, "a/", "deep/")
    assert len(digests) == 1


def test_the_shell_sorts_bytes_in_whatever_locale_it_is_run(tmp_path: Path) -> None:
    repo, bin_ = scratch(tmp_path / "repo", "sha1"), tmp_path / "bin"
    bin_.mkdir()
    locale = f'#!/bin/sh\n[ "$LC_ALL" = C ] && exec {which("sort")} "$@"\n'
    (bin_ / "sort").write_text(f'{locale}exec {which("sort")} --reverse "$@"\n')
    (bin_ / "sort").chmod(0o755)
    assert shell_digest(repo, bin_=bin_) == our_digest(repo)


def test_the_shell_refuses_a_link_as_well(tmp_path: Path) -> None:
    repo = scratch(tmp_path / "repo", "sha1")
    (repo / "link").symlink_to("a/x.py")
    git(repo, "add", "link")
    git(repo, "commit", "-qm", "link")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        shell_digest(repo)
    assert "link is no regular file" in caught.value.stderr
