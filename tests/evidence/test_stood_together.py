# SPDX-License-Identifier: Apache-2.0
"""What no digest holds must have stood together, and be told where a clone can not tell."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasttrack.change.former import PastUnavailable
from fasttrack.change.read import read_change, read_revision
from fasttrack.config import judged_or_head, read_base_manifests, read_config
from fasttrack.errors import InputError
from fasttrack.evidence.at_head import effective_at_head
from fasttrack.evidence.effective import effective_tiers
from fasttrack.evidence.inputs import InputFile, UnitInputs
from fasttrack.evidence.predicates.common import BoundaryFile
from fasttrack.evidence.surroundings import TRIES, Surroundings, Then
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
    UNIT,
    answers,
    digest_of,
    measured_at,
    ran,
    started,
    tiers,
)
from tests.evidence.units import SOURCES


def cloned(repo: Repo, where: Path, *options: str) -> None:
    """Clones a repository as a person does, without the person's configuration."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    command = ["git", "clone", "--quiet", *options, f"file://{repo.path}", str(where)]
    subprocess.run(command, env=environment, check=True, capture_output=True)


def strange(
    repo: Repo,
    start: str,
    apart: Then,
    moved: Then | None = None,
    bound: Sequence[str] = (),
    wired: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Which paths of a run from a commit nobody can have seen so."""
    with read_change(repo.path, target="main", head="topic") as change:
        found = Surroundings(change, judged_or_head(change))
        texts = (moved or {}).items()
        then = {path: None if text is None else digest_of(text) for path, text in texts}
        files = tuple(InputFile(path, "100644", "0" * 64, "named") for path in bound)
        unit = UnitInputs(
            "unit", files, (), (), roots=("root/",), unbound=("manifests/",), wired=wired
        )
        return found.strange(ran(start, apart), then, unit)


def test_what_was_apart_must_be_what_the_change_does_or_one_later_commit_did(
    tmp_path: Path,
) -> None:
    repo = Repo(tmp_path)
    old = repo.commit("main", {"f": "1", "g": "1", "h": "1"})
    repo.commit("main", {"f": "2"})
    start = repo.commit("main", {"g": "2"})
    repo.commit("main", {"f": "3", "h": "3"})
    tip = repo.commit("main", {"f": "4", "g": "4"})
    repo.commit("topic", {"h": "mine", "k": "mine"}, parent=tip)
    assert strange(repo, start, {"f": "3", "h": "3"}) == ()
    assert strange(repo, start, {"f": "3"}) == ("f",)  # without what else that commit did
    assert strange(repo, start, {"g": "4"}) == ("g",)
    assert strange(repo, start, {"k": "mine"}) == ()
    assert strange(repo, tip, {"h": "mine", "k": "mine"}) == ()
    assert strange(repo, start, {"f": "4", "g": "4", "h": "3"}) == ()  # all of two commits
    for picks in ({"f": "4", "g": "4"}, {"f": "3", "g": "4"}, {"f": "1", "g": "1"}):
        assert strange(repo, start, picks) == tuple(picks)
    assert strange(repo, start, {"h": "mine"}) == ("h",)  # it was edited beneath the change since
    assert strange(repo, start, {"f": "4", "k": "mine"}) == ("f",)
    assert strange(repo, start, {"f": "3", "k": "mine"}) == ("f",)  # half of what landed
    assert strange(repo, start, {"f": "3", "h": "3", "k": "mine"}) == ()
    assert strange(repo, old, {"f": "2", "k": "mine"}) == ()
    assert strange(repo, old, {"g": "2", "k": "mine"}) == ("g",)  # without what came before it
    assert strange(repo, old, {"f": "2", "g": "2"}) == ()
    assert strange(repo, old, {"f": "2"}) == strange(repo, old, {"g": "2"}) == ()
    assert strange(repo, old, {"f": "3", "h": "3"}) == ("f", "h")


def test_one_later_commit_vouches_for_what_was_measured_and_for_no_other_code(
    tmp_path: Path,
) -> None:
    repo = Repo(tmp_path)
    start = repo.commit("main", {"code": "broken", "test": "weak", "near": "lax"})
    repo.commit("main", {"near": "strict"})
    repo.commit("main", {"code": "mended"})
    tip = repo.commit("main", {"test": "relies on near"})
    repo.commit("topic", {"root/words": "new"}, parent=tip)
    assert strange(repo, start, {}, {"near": "lax"}, ["test"]) == ()
    # The change brings back what that commit never stood with.
    repo.commit("topic", {"code": "broken"}, parent=tip)
    assert strange(repo, start, {}, {"near": "lax"}, ["code", "test"]) == ("test",)


def test_a_change_that_takes_a_file_away_is_no_longer_what_landed(tmp_path: Path) -> None:
    repo = Repo(tmp_path)
    start = repo.commit("main", {"code": "1", "near": "lax", "gone": "1", "root/gone": "1"})
    repo.commit("main", {"near": "strict"})
    tip = repo.commit("main", {"code": "2"})
    for path in ("gone", "root/gone"):
        repo.commit("topic", {path: None}, parent=tip)
        assert strange(repo, start, {}, {"near": "lax"}, ["code"]) == ("code",)
    repo.commit("topic", {"note.md": "2"}, parent=tip)
    assert strange(repo, start, {}, {"near": "lax"}, ["code"]) == ()


def test_lines_that_wire_the_path_up_are_measured_with_it(tmp_path: Path) -> None:
    repo = Repo(tmp_path)
    start = repo.commit("main", {"code": "1", "wired": "1", "other": "1"})
    repo.commit("topic", {"code": "2", "wired": "2", "other": "2"}, parent=start)
    with_wiring = {"wired": "2", "other": "2"}
    assert strange(repo, start, with_wiring, {}, ["code"], ("wired",)) == ()
    assert strange(repo, start, {"other": "2"}, {}, ["code"], ("wired",)) == ("wired",)
    assert strange(repo, start, {"other": "2"}, {}, ["code"]) == ()
    # What the target has of its own accord needs no measuring.
    repo.commit("main", {"wired": "3"})
    assert strange(repo, start, with_wiring, {}, ["code"], ("wired",)) == ()


def test_what_one_commit_did_counts_only_whole_and_what_the_branch_did_is_not_brought(
    tmp_path: Path,
) -> None:
    repo = Repo(tmp_path)
    start = repo.commit("main", {"code": "broken", "test": "lax", "near": "lax", "same": "1"})
    new: dict[str, Content] = {"test": "tries", "near": "strict", "same": "2"}
    tip = repo.commit("main", {"code": "mended", **new})
    repo.commit("topic", {"code": "broken"}, parent=tip)
    bound = ["code", "test"]
    assert strange(repo, start, {}, {"near": "lax"}, bound) == ("test",)
    picks = {"near": "strict", "same": "2"}
    assert strange(repo, start, picks, {}, bound) == ("near", "same", "test")
    # The same file as the branch has by now, taken from there.
    repo.commit("topic", {"code": "worse", "same": "2"}, parent=start)
    assert strange(repo, start, {}, {}, ["code", "same"]) == ("code", "same")
    assert strange(repo, start, {"same": "2"}, {}, ["code"]) == ("code",)


def test_no_more_commits_are_looked_at_whole_than_a_few(tmp_path: Path) -> None:
    repo = Repo(tmp_path)
    start = repo.commit("main", {"f": "1"})
    repo.commit("main", {"g": "1"})
    for number in range(2 * (TRIES + 1)):
        tip = repo.commit("main", {"f": str(number % 2), "h": str(number)})
    repo.commit("topic", {"mine": "1"}, parent=tip)
    with read_change(repo.path, target="main", head="topic") as change:
        found = Surroundings(change, judged_or_head(change))
        before = change.process_count
        assert found.strange(ran(start, {"f": "0"}), {}, UNIT) == ("f",)
        assert change.process_count - before <= 2 * TRIES + 5


def test_of_what_landed_beneath_a_change_files_that_do_not_count_may_lack(tmp_path: Path) -> None:
    others: dict[str, Content] = {"a.md": "1", "manifests/p.yaml": "1", "root/other.py": "1"}
    for extra, wanted in (({}, ()), ({"near.py": "1"}, ("f",)), ({"root/x.so": "1"}, ("f",))):
        repo = Repo(tmp_path / str(len(extra)) / "".join(extra).replace("/", "-"))
        start = repo.commit("main", {"f": "1"})
        tip = repo.commit("main", {"f": "2", **others, **extra})
        repo.commit("topic", {"mine": "1"}, parent=tip)
        assert strange(repo, start, {"f": "2", "mine": "1"}) == wanted


def test_what_the_change_brings_counts_although_merging_adds_what_others_did(
    tmp_path: Path,
) -> None:
    repo = Repo(tmp_path)
    wiring = "a\n" * 9
    start = repo.commit("main", {"f": wiring, "g": "1"})
    repo.commit("topic", {"f": "mine\n" + wiring, "h": "1"}, parent=start)
    repo.commit("main", {"f": wiring + "theirs\n", "g": "2"})
    mine = {"f": "mine\n" + wiring, "h": "1"}
    assert strange(repo, start, mine) == ()
    assert strange(repo, start, {"f": "mine\n" + wiring + "theirs\n", "h": "1"}) == ("f",)
    assert strange(repo, start, mine | {"g": "2"}) == ("g",)
    assert strange(repo, start, mine | {"g": "3"}) == ("g",)


def test_what_moved_must_have_been_so_where_the_run_started_or_be_told_as_apart(
    tmp_path: Path,
) -> None:
    repo = Repo(tmp_path)
    repo.commit("main", {"near": "0"})
    start = repo.commit("main", {"near": "1"})
    repo.commit("main", {"near": "2", "late": "1"})
    repo.commit("topic", {"mine": "1"}, parent=repo.commit("main", {"near": "3"}))
    assert strange(repo, start, {}, {"near": "1", "late": None}) == ()
    for text in ("0", "2", None):
        assert strange(repo, start, {}, {"near": text}) == ("near",)
    assert strange(repo, start, {"near": "2", "late": "1"}, {"near": "2"}) == ()
    assert strange(repo, start, {"near": "2"}, {"near": "2"}) == ("near",)
    assert strange(repo, start, {"near": "2"}, {"near": "0"}) == ("near",)
    assert strange(repo, start, {}, {"near": "1", "late": "1"}) == ("late",)


def test_newer_tests_can_not_be_carried_back_to_older_surroundings(tmp_path: Path) -> None:
    repo = Repo(tmp_path)
    start = repo.commit("main", {"code": "1", "test": "lax", "near": "lax", "deep": "lax"})
    tip = repo.commit("main", {"test": "tries", "near": "strict", "deep": "strict", "late": "1"})
    bound = ["code", "test"]
    moved = {"near": "lax", "late": None}
    topic = repo.commit("topic", {"code": "broken"}, parent=tip)
    assert strange(repo, start, {}, moved, bound) == ("test",)
    assert strange(repo, start, {}, moved, ["code"]) == ()
    assert strange(repo, start, {}, {}, bound) == ("test",)
    assert strange(repo, start, {"near": "strict"}, {}, bound) == ("near", "test")
    repo.commit("topic", {"code": "broken", "test": "tries, too"}, parent=tip)
    assert strange(repo, start, {}, moved, bound) == ("test",)  # brought on top of newer ones
    # Once the code has landed, a change of something else brings neither.
    landed = repo.commit("main", {"code": "broken"}, parent=(tip, topic))
    repo.commit("topic", {"docs": "1"}, parent=landed)
    assert strange(repo, start, {}, moved, bound) == ("code", "test")
    assert strange(repo, tip, {}, {}, bound) == ()


CONTENTS = st.sampled_from(["1", "2", None])
STATES = st.lists(st.fixed_dictionaries(dict.fromkeys("abc", CONTENTS)), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(STATES, st.integers(0, 5), st.dictionaries(st.sampled_from("abc"), CONTENTS), st.data())
def test_the_rule_is_that_of_its_words(
    tmp_path_factory: pytest.TempPathFactory,
    states: list[dict[str, str | None]],
    place: int,
    brought: dict[str, str | None],
    data: st.DataObject,
) -> None:
    repo = Repo(tmp_path_factory.mktemp("repo"))
    made: list[str] = []
    before: Mapping[str, str | None] = {}
    for state in [{}, *states]:
        made.append(repo.commit("main", {"n.md": str(len(made))} | edits(before, state)))
        before = state
    place = min(place, len(states))
    repo.commit("topic", {"mine": "1"} | edits(before, brought), parent=made[-1])
    past = [dict.fromkeys("abc"), *(dict.fromkeys("abc") | state for state in states)][place:]
    measured = data.draw(st.fixed_dictionaries(dict.fromkeys("abc", CONTENTS)))
    apart = {path: text for path, text in measured.items() if text != past[0][path]}
    assert (strange(repo, made[place], apart) == ()) == stood(past, edits(before, brought), apart)


Past = Sequence[Mapping[str, str | None]]


def stood(past: Past, change: Mapping[str, Content], own: Mapping[str, str | None]) -> bool:
    """The rule in its words: what a branch was since the start, what a change does to its tip."""
    start, tip = past[0], past[-1]
    mine = {p for p in own if p in change and change[p] == own[p] and tip[p] == start[p]}
    rest = own.keys() - mine
    if not rest:
        return True
    for before, after in pairwise(past):
        if any(after[p] != own[p] for p in rest) or all(before[p] == after[p] for p in rest):
            continue
        since = before if not mine and all(before[p] == start[p] for p in rest) else start
        did = {p for p in tip if after[p] != since[p]}
        if did <= own.keys() and all(after[p] == own[p] for p in did):
            return True
    return False


def edits(before: Mapping[str, str | None], after: Mapping[str, str | None]) -> dict[str, Content]:
    """What a commit does to get from one state to another."""
    return {path: text for path, text in after.items() if text != before.get(path)}


DEEP = "engine/deep.py"
"""Imported by what the roots import."""
WIRED: dict[str, Content] = {
    **EDIT,
    "engine/foo/more.py": "X = 1\n",
    "engine/wiring.py": "TABLE = 1\n",
    "tests/foo/test_more.py": "def test_more(): pass\n",
}
"""Code in the roots, a file that wires it up outside them, and a test."""


@pytest.mark.parametrize("way", ["as it is", "moved on", "rebased", "caught up", "landed"])
def test_an_honest_change_keeps_its_evidence_however_it_goes_on(tmp_path: Path, way: str) -> None:
    repo, start = started(tmp_path)
    at = repo.commit("topic", WIRED, parent=start)
    told = statements_for(repo.path, at)
    assert {file.path for one in told for file in one.predicate.inputs.apart} >= {
        "engine/wiring.py"
    }
    kept = stored(tmp_path / "new", told)
    head = repo.commit("topic", kept)
    tip = start
    for number in range(0 if way == "as it is" else 50):
        tip = repo.commit("main", {"engine/others.py": f"N = {number}\n"}, parent=tip)
    if way == "rebased":
        repo.commit("topic", {**WIRED, **kept}, parent=tip)
    elif way == "caught up":
        repo.commit("topic", {"engine/others.py": "N = 49\n"}, parent=(head, tip))
    elif way == "landed":
        repo.commit("main", {**WIRED, **kept}, parent=(tip, head))
        repo.commit("main", {"engine/wiring.py": "TABLE = 2\n"})
        assert tiers(repo, "main") == [Tier.KERNEL_TESTED]
        return
    verdict = judged(repo.path)
    assert set(statuses(verdict)) == {"covered"}
    assert verdict.coverage.unknown == ()


RIGGED_DEEP = SOURCES[DEEP] + "RIGGED = True\n"
COVERED: tuple[Outcome, set[str], set[str]] = (Outcome.FAST_TRACK, {"covered"}, set())


@pytest.mark.parametrize(
    ("used", "moved", "wanted"),
    [
        ({DEEP: SOURCES[DEEP]}, {}, COVERED),
        ({DEEP: SOURCES[DEEP]}, {DEEP: "LIMIT = 2\n"}, COVERED),
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
    told = [BoundaryFile(path=path, sha256=digest_of(text)) for path, text in used.items()]
    kept = stored(tmp_path / "new", statements_for(repo.path, at, told))
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
