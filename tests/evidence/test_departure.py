# SPDX-License-Identifier: Apache-2.0
"""What a signed statement tells of its commit's surroundings."""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

import pytest
from pydantic import ValidationError

from fasttrack.change.read import read_change
from fasttrack.errors import InputError
from fasttrack.evidence import departure as module
from fasttrack.evidence.departure import Departure
from fasttrack.evidence.predicates.common import BoundaryFile, Inputs
from fasttrack.evidence.statement import Statement, read_statement
from fasttrack.testing import Content, File, Repo, Symlink
from fasttrack.vocabulary import Kind
from tests.evidence.strategies import good

STORE = "manifests/evidence/a.dsse.jsonl"
START: Mapping[str, Content] = {
    "engine/a.py": "1",
    "tests/t.py": "1",
    "near.py": "1",
    "near.h": "1",
    "deep.py": "1",
    "docs/a.md": "1",
    "manifests/k3.yaml": "1",
    "pyproject.toml": "1",
    STORE: "1",
}


def file(path: str, text: str) -> BoundaryFile:
    """A file with this content."""
    return BoundaryFile(path=path, sha256=sha256(text.encode()).hexdigest())


NEAR = (file("near.py", "1"), file("near.h", "1"))


def told(
    repo: Repo, used: Iterable[BoundaryFile] = (), near: tuple[BoundaryFile, ...] = NEAR
) -> Inputs:
    """What a statement says that is signed at `topic`, of a run that used these files."""
    collected = Inputs(unit="u", digest="0" * 64, tests="1" * 64, boundary=(*near, *used))
    with read_change(repo.path, target="main", head="topic") as change:
        found = Departure(change, ["engine/"], "manifests")
        return found.told(collected, ["engine/a.py", "tests/t.py"], near, "it")


def apart(found: Inputs) -> dict[str, str | None]:
    """Path to content, of contents of one letter."""
    known = {sha256(letter.encode()).hexdigest(): letter for letter in "0123456789"}
    return {one.path: known.get(str(one.sha256), one.sha256) for one in found.apart}


def changed(tmp_path: Path, edits: Mapping[str, Content]) -> Repo:
    """A repository whose `topic` has these edits."""
    repo = Repo(tmp_path)
    repo.commit("topic", edits, parent=repo.commit("main", START))
    return repo


@pytest.mark.parametrize(
    ("edits", "wanted"),
    [
        ({"engine/a.py": "2", "engine/b.py": "2", "tests/t.py": "2", "docs/a.md": "2"}, {}),
        ({"deep.py": "2", "iniconfig.py": "3"}, {"deep.py": "2", "iniconfig.py": "3"}),
        ({"deep.h": "2", "quick.flag": "3"}, {"deep.h": "2", "quick.flag": "3"}),
        ({".venv/site.pth": "2"}, {".venv/site.pth": "2"}),
        ({"engine/a.abi3.so": "2", "engine/b.py": "3"}, {"engine/a.abi3.so": "2"}),
        ({"deep.py": None, "lib.abi3.so": "4"}, {"deep.py": None, "lib.abi3.so": "4"}),
        ({"deep.py": File("1", "100755")}, {}),
        ({"manifests/k3.yaml": "2", "manifests/new.yaml": "2", STORE: "2"}, {}),
        (
            {"manifests/k3.yaml": None, "pyproject.toml": None},
            {"manifests/k3.yaml": None, "pyproject.toml": None},
        ),
        ({STORE: None}, {}),
    ],
    ids=[
        "bound",
        "edited",
        "data",
        "environment",
        "compiled in the roots",
        "gone",
        "mode",
        "configuration",
        "no configuration",
        "store",
    ],
)
def test_what_could_matter_and_is_not_as_on_the_target_is_told(
    tmp_path: Path, edits: Mapping[str, Content], wanted: dict[str, str | None]
) -> None:
    repo = changed(tmp_path, edits)
    found = told(repo)
    assert (found.boundary, apart(found)) == (NEAR, wanted)


def test_a_header_is_told_whether_or_not_it_is_of_the_boundary(tmp_path: Path) -> None:
    repo = changed(tmp_path, {"near.h": "2"})
    assert apart(told(repo, near=(file("near.h", "2"),))) == {"near.h": "2"}
    assert apart(told(repo, near=())) == {"near.h": "2"}


def test_what_a_run_used_is_told_where_it_was_not_as_on_the_target(tmp_path: Path) -> None:
    repo = changed(tmp_path, {"manifests/k3.yaml": "2", "deep.py": "2", STORE: "2"})
    used = [file("manifests/k3.yaml", "2"), file("pyproject.toml", "1"), file("deep.py", "2")]
    assert apart(told(repo, used)) == {"manifests/k3.yaml": "2", "deep.py": "2"}
    assert apart(told(repo, [file(STORE, "2")])) == {STORE: "2", "deep.py": "2"}


def test_what_a_run_used_with_other_bytes_than_its_commits_is_told_as_it_was(
    tmp_path: Path,
) -> None:
    repo = changed(tmp_path, {"deep.py": "2"})
    used = [file("deep.py", "3"), file("pyproject.toml", "4"), file("gone.py", "5")]
    assert apart(told(repo, used)) == {"deep.py": "3", "pyproject.toml": "4", "gone.py": "5"}


def test_a_link_counts_whatever_its_name(tmp_path: Path) -> None:
    found = told(changed(tmp_path, {"lib": Symlink("vendor"), "docs/a.md": Symlink("b")}))
    assert [one.path for one in found.apart] == ["docs/a.md", "lib"]
    assert None not in {one.sha256 for one in found.apart}


def test_the_start_is_the_newest_commit_of_the_target_and_what_it_gained_since_is_not_apart(
    tmp_path: Path,
) -> None:
    repo = Repo(tmp_path)
    start = repo.commit("main", START)
    topic = repo.commit("topic", {"deep.py": "2"}, parent=start)
    newer = repo.commit("main", {"other.py": "1"})
    assert (told(repo).target, apart(told(repo))) == (start, {"deep.py": "2"})
    repo.commit("topic", {"other.py": "1"}, parent=(topic, newer))
    repo.commit("main", {"other.py": "2"})
    assert (told(repo).target, apart(told(repo))) == (newer, {"deep.py": "2"})


def test_more_files_than_a_statement_tells_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_APART", 2)
    repo = changed(tmp_path, {"a.py": "1", "b.py": "1", "c.py": "1"})
    with pytest.raises(InputError, match=r"^it: saw 3 files in no digest .*; want at most 2"):
        told(repo)


def test_a_name_that_no_statement_can_have_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^it: apart"):
        told(changed(tmp_path, {"odd\nname.py": "1"}))


def test_what_only_signing_adds_is_not_in_what_was_collected(tmp_path: Path) -> None:
    collected = good(Kind.REFUSAL)
    assert not {"target", "apart"} & json.loads(collected.to_bytes())["predicate"]["inputs"].keys()
    assert read_statement(collected.to_bytes(), "it") == collected
    found = told(changed(tmp_path, {"deep.py": None}))
    inputs = json.loads(
        Statement(
            collected.predicate_type, collected.predicate.model_copy(update={"inputs": found})
        ).to_bytes()
    )["predicate"]["inputs"]
    assert inputs["target"] == found.target
    assert inputs["apart"] == [{"path": "deep.py", "sha256": None}]
    with pytest.raises(ValidationError, match="`apart` without `target`"):
        Inputs(unit="u", digest="0" * 64, tests="1" * 64, apart=found.apart)
