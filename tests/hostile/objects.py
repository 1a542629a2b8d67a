# SPDX-License-Identifier: Apache-2.0
"""Hostile objects: enormous, multiplied, malformed, missing."""

from collections.abc import Callable, Mapping
from pathlib import Path

from fasttrack.testing import Content, Repo, Stored
from tests.engine import KERNEL, MANIFEST, POLICY, ROOT, SHARED, files
from tests.hostile.case import (
    BAD_INPUT,
    FAST_TRACK,
    GATE,
    ORDINARY,
    REFUSED,
    TABLE,
    Hostile,
    tabled,
    wired,
)
from tests.hostile.enormous import loose_zeros, nested_trees, packed_against

Build = Callable[[Path], None]
Make = Callable[[Repo], Content]


def _added(path: str, make: Make, base: Mapping[str, Content] | None = None) -> Build:
    """The change brings what `make` makes, beside a harmless edit of the roots."""

    def build(where: Path) -> None:
        repo = Repo(where)
        tip = repo.commit("main", dict(files()) | dict(base or {}))
        repo.commit("topic", {KERNEL: "BLOCK = 64\n", path: make(repo)}, parent=tip)

    return build


def _there(path: str, make: Make) -> Build:
    """The target branch has what `make` makes already; the change is harmless."""

    def build(where: Path) -> None:
        repo = Repo(where)
        tip = repo.commit("main", dict(files()) | {path: make(repo)})
        repo.commit("topic", {KERNEL: "BLOCK = 64\n"}, parent=tip)

    return build


def _gigabyte(repo: Repo) -> Content:
    return Stored(loose_zeros(repo))


def _delta(repo: Repo) -> Content:
    return Stored(packed_against(repo, loose_zeros(repo), b"BLOCK = 64\n"))


def _nowhere(repo: Repo) -> Content:
    del repo
    return Stored("1" * 40)


def _damaged(repo: Repo) -> Content:
    oid = repo.write("blob", b"BLOCK = 128\n" * 20)
    file = repo.git_dir / "objects" / oid[:2] / oid[2:]
    file.write_bytes(file.read_bytes()[:-8])
    return Stored(oid)


def _bomb(repo: Repo) -> Content:
    return Stored(nested_trees(repo), "40000")


def _names(*names: bytes) -> Make:
    def make(repo: Repo) -> Content:
        blob = repo.write("blob", b"x = 1\n")
        return Stored(repo.tree([("100644", name, blob) for name in names]), "40000")

    return make


def _tree_that_is_a_blob(repo: Repo) -> Content:
    return Stored(repo.write("blob", b"x = 1\n"), "40000")


def _many_refs(where: Path) -> None:
    repo = Repo(where)
    tip = repo.commit("main", files())
    repo.commit("topic", {KERNEL: "BLOCK = 64\n"}, parent=tip)
    lines = [f"{tip} refs/remotes/origin/r{n:05d}\n" for n in range(10_000)]
    (repo.git_dir / "packed-refs").write_text("# pack-refs with: sorted \n" + "".join(lines))


CASES = (
    Hostile("a gigabyte added to the roots", _added(KERNEL, _gigabyte), ORDINARY, "FT115"),
    Hostile("a gigabyte as a manifest", _added(MANIFEST, _gigabyte), REFUSED, "FT301"),
    Hostile(
        "a gigabyte as a new manifest", _added("manifests/bar.yaml", _gigabyte), REFUSED, "FT301"
    ),
    Hostile("a gigabyte as the changed policy", _added(POLICY, _gigabyte), REFUSED, "FT119"),
    Hostile(
        "a gigabyte as the policy in force", _there(POLICY, _gigabyte), BAD_INPUT, "policy.yaml"
    ),
    Hostile(
        "a gigabyte as a manifest in force", _there(MANIFEST, _gigabyte), BAD_INPUT, "foo.yaml"
    ),
    Hostile(
        "a gigabyte as pyproject.toml", _there("pyproject.toml", _gigabyte), BAD_INPUT, "pyproject"
    ),
    Hostile(
        "a gigabyte as a variant table", _added(TABLE, _gigabyte, tabled()), ORDINARY, "could not"
    ),
    Hostile(
        "a gigabyte as a wired file", _added(SHARED, _gigabyte, wired()), ORDINARY, "could not"
    ),
    Hostile("a gigabyte as a gate", _added(GATE, _gigabyte), ORDINARY, "could not"),
    Hostile(
        "a gigabyte beside the change",
        _there(ROOT + "big.bin", _gigabyte),
        FAST_TRACK,
        "fast-track",
    ),
    Hostile("a small delta against a gigabyte", _added(KERNEL, _delta), ORDINARY, "could not"),
    Hostile("such a delta as a manifest", _added(MANIFEST, _delta), REFUSED, "FT301"),
    Hostile("such a delta as the policy in force", _there(POLICY, _delta), BAD_INPUT, "policy"),
    Hostile("nested trees of ten billion files", _added(ROOT + "t", _bomb), BAD_INPUT, "want"),
    Hostile("such trees on the target branch", _there("t", _bomb), BAD_INPUT, "want"),
    Hostile(
        "a tree with one name twice",
        _added(ROOT + "t", _names(b"a.py", b"a.py")),
        BAD_INPUT,
        "twice",
    ),
    Hostile(
        "such a tree on the target branch",
        _there("t", _names(b"a.py", b"a.py")),
        BAD_INPUT,
        "twice",
    ),
    Hostile("a tree with `..`", _added(ROOT + "t", _names(b"..")), REFUSED, "FT109"),
    Hostile("a tree with `.git`", _added(ROOT + "t", _names(b".git")), REFUSED, "FT109"),
    Hostile(
        "a tree with a slash in a name",
        _added(ROOT + "t", _names(b"a/../../b.py")),
        REFUSED,
        "FT109",
    ),
    Hostile("a tree that is a blob", _added(ROOT + "t", _tree_that_is_a_blob), BAD_INPUT, "want"),
    Hostile("a damaged blob", _added(KERNEL, _damaged), ORDINARY, "could not"),
    Hostile("a damaged manifest", _added(MANIFEST, _damaged), REFUSED, "FT301"),
    Hostile("a damaged policy in force", _there(POLICY, _damaged), BAD_INPUT, "policy"),
    Hostile("a missing blob", _added(KERNEL, _nowhere), ORDINARY, "could not"),
    Hostile("a missing manifest", _added(MANIFEST, _nowhere), REFUSED, "FT301"),
    Hostile("a missing policy in force", _there(POLICY, _nowhere), BAD_INPUT, "policy"),
    Hostile("10,000 refs", _many_refs, FAST_TRACK, "fast-track"),
)
