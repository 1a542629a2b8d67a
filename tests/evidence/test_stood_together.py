# SPDX-License-Identifier: Apache-2.0
"""What no digest holds must have stood together, and be told where a clone can not tell."""

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from fasttrack.change.former import PastUnavailable
from fasttrack.change.read import read_change, read_revision
from fasttrack.config import judged_or_head, read_base_manifests, read_config
from fasttrack.errors import InputError
from fasttrack.evidence.at_head import effective_at_head
from fasttrack.evidence.effective import effective_tiers
from fasttrack.evidence.predicates.common import BoundaryFile
from fasttrack.evidence.statement import Statement
from fasttrack.evidence.surroundings import Surroundings, Then
from fasttrack.testing import Content, Repo
from fasttrack.verdict import Outcome
from fasttrack.vocabulary import Tier
from tests.engine import AS_OF
from tests.evidence.lanes import judged, lane, statements_for, statuses, stored
from tests.evidence.test_surroundings import (
    EDIT,
    NEWER,
    PASSES,
    REFUSED,
    answers,
    digest_of,
    measured_at,
    started,
    tiers,
)
from tests.evidence.units import SOURCES


def cloned(repo: Repo, where: Path, *options: str) -> None:
    """Clones a repository as a person does, without the person's configuration."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    command = ["git", "clone", "--quiet", *options, f"file://{repo.path}", str(where)]
    subprocess.run(command, env=environment, check=True, capture_output=True)


def never(repo: Repo, then: Then, bound: Sequence[str] = ()) -> tuple[str, ...]:
    """Which paths of a run nobody can have seen so."""
    with read_change(repo.path, target="main", head="topic") as change:
        found = Surroundings(change, judged_or_head(change))
        texts = {path: None if text is None else digest_of(text) for path, text in then.items()}
        return found.foreign(texts, bound)


def test_files_must_have_stood_together_at_one_commit(tmp_path: Path) -> None:
    repo = Repo(tmp_path)
    repo.commit("main", {"f": "1", "g": "1", "h": "1"})
    repo.commit("main", {"f": "2"})
    start = repo.commit("main", {"g": "2"})
    repo.commit("topic", {"h": "2"}, parent=start)
    for then in ({"f": "1", "g": "1"}, {"f": "2", "g": "1"}, {"f": "2", "g": "2"}):
        assert never(repo, then) == ()
        assert never(repo, {**then, "h": "2"}) == ()  # the change's own
    assert never(repo, {"f": "1", "g": "2", "h": "1"}) == ("f", "h")
    assert never(repo, {"f": "1", "g": "3"}) == ("g",)


def test_a_file_was_missing_only_beside_the_files_that_miss_it(tmp_path: Path) -> None:
    repo = Repo(tmp_path)
    repo.commit("main", {"test": "without", "near": "lax", "other": "1"})
    repo.commit("main", {"near": "strict"})
    repo.commit("main", {"test": "tries late", "late": "1"})
    start = repo.commit("main", {"other": "2"})
    repo.commit("topic", {"mine": "1"}, parent=start)
    then = {"near": "lax", "late": None}
    assert never(repo, then) == ()
    assert never(repo, then, ["test"]) == ("late", "near")
    assert never(repo, then, ["mine"]) == ()  # what the change brings was not there before
    assert never(repo, {"near": "lax", "other": "1"}, ["test"]) == ()


DEEP = "engine/deep.py"
"""Imported by what the roots import."""


def also(told: Iterable[Statement], files: Mapping[str, str]) -> list[Statement]:
    """The statements of runs that used these files as well."""
    return [
        Statement(
            one.predicate_type,
            one.predicate.model_copy(
                update={
                    "inputs": one.predicate.inputs.model_copy(
                        update={
                            "boundary": (
                                *one.predicate.inputs.boundary,
                                *(BoundaryFile(path=p, sha256=digest_of(files[p])) for p in files),
                            )
                        }
                    )
                }
            ),
        )
        for one in told
    ]


RIGGED_DEEP = SOURCES[DEEP] + "RIGGED = True\n"
COVERED = (Outcome.FAST_TRACK, {"covered"}, set())


@pytest.mark.parametrize(
    ("used", "moved", "wanted"),
    [
        ({DEEP: SOURCES[DEEP]}, {}, COVERED),
        ({DEEP: SOURCES[DEEP]}, {DEEP: "LIMIT = 2\n"}, PASSES),
        ({DEEP: RIGGED_DEEP}, {}, REFUSED),
        ({DEEP: SOURCES[DEEP], "iniconfig.py": "rig"}, {}, REFUSED),
        ({"manifests/notes.txt": "a: 1\n"}, {"manifests/notes.txt": "a: 2\n"}, COVERED),
        ({"manifests/notes.txt": "a: 3\n"}, {"manifests/notes.txt": "a: 2\n"}, REFUSED),
    ],
    ids=["as it is", "moved on", "rigged", "added", "configuration", "rigged configuration"],
)
def test_what_a_run_was_seen_to_use_is_held_against_the_target_too(
    tmp_path: Path,
    used: Mapping[str, str],
    moved: dict[str, Content],
    wanted: tuple[Outcome, set[str], set[str]],
) -> None:
    repo = Repo(tmp_path / "repo")
    start = repo.commit("main", lane() | {"manifests/notes.txt": "a: 1\n"})
    at = repo.commit("topic", EDIT, parent=start)
    kept = stored(tmp_path / "new", also(statements_for(repo.path, at), used))
    tip = repo.commit("main", moved | {"docs/foo.md": "later\n"}, parent=start)
    repo.commit("topic", EDIT | dict(kept), parent=tip)
    assert answers(judged(repo.path)) == wanted


def test_where_the_clone_was_cut_off_nobody_can_tell(tmp_path: Path) -> None:
    repo, start = started(tmp_path)
    at = repo.commit("topic", EDIT, parent=start)
    kept = measured_at(repo, tmp_path / "new", at)
    repo.commit("main", NEWER)
    tip = repo.commit("main", {"docs/foo.md": "later\n"})
    repo.commit("topic", EDIT | kept, parent=tip)
    assert answers(judged(repo.path)) == PASSES
    shallow = tmp_path / "shallow"
    cloned(repo, shallow, "--depth=2", "--no-single-branch")
    verdict = judged(shallow, "origin/topic")
    assert verdict.outcome is not Outcome.FAST_TRACK
    assert set(statuses(verdict)) == {"missing"}
    assert all("git fetch --unshallow" in reason for reason in verdict.coverage.unknown)
    assert verdict.coverage.unknown


def test_a_tier_is_no_lower_for_what_a_clone_lacks(tmp_path: Path) -> None:
    repo, start = started(tmp_path)
    kept = measured_at(repo, tmp_path / "new", start)
    repo.commit("main", kept)
    repo.commit("main", NEWER)
    assert tiers(repo, "main") == [Tier.KERNEL_TESTED]
    shallow = tmp_path / "shallow"
    cloned(repo, shallow, "--depth=1")
    with read_revision(shallow, "main") as found:
        config = read_config(found, folder=None, policy_file=None)
        (manifest,) = read_base_manifests(found, config).valid.values()
        with pytest.raises(PastUnavailable, match="cut off"):
            effective_tiers(found, config, manifest, AS_OF)
    with pytest.raises(InputError, match=r"the evidence of HEAD.*--unshallow"):
        effective_at_head(shallow, config, [manifest], AS_OF)
