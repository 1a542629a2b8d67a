# SPDX-License-Identifier: Apache-2.0
"""A store has room for so much: who fills it is told, and what is not read is never passed over."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.change.read import read_change, read_revision
from fasttrack.cli.main import run
from fasttrack.config import read_base_manifests, read_config
from fasttrack.errors import FactUnavailable
from fasttrack.evidence import store
from fasttrack.evidence.dsse import Signature, Signed
from fasttrack.evidence.effective import effective_tiers
from fasttrack.evidence.known import Known
from fasttrack.evidence.packed import unpack
from fasttrack.evidence.repeats import repeats
from fasttrack.evidence.store import Contents, Stored, is_too_large, read_tree
from fasttrack.evidence.subject import unit_of
from fasttrack.testing import Content, Repo
from fasttrack.verdict import Outcome, Verdict
from fasttrack.vocabulary import Kind
from tests.engine import AS_OF, KERNEL
from tests.evidence.lanes import (
    KEPT,
    judged,
    lane,
    owed_at,
    shown,
    statements_for,
    statuses,
    stored,
)
from tests.evidence.plans import write_files
from tests.evidence.test_covered_changes import EDIT, changed

FOLDER = KEPT.rstrip("/")


def unpacked(files: Mapping[str, Content]) -> int:
    """Bytes of the lines of packed files."""
    return sum(len(unpack(cast("bytes", content))[0]) for content in files.values())


def of_503(verdict: Verdict) -> list[str]:
    """What the rule saw."""
    return [found.saw for found in verdict.findings if found.rule == "FT503"]


def full(where: Path, monkeypatch: pytest.MonkeyPatch, room: int) -> Repo:
    """A kernel edit with all its evidence, where the store has so many bytes more or less."""
    repo, _, topic = changed(where)
    files = stored(where / "new", statements_for(repo.path, topic))
    repo.commit("topic", files)
    monkeypatch.setattr(store, "MAX_STORE_BYTES", unpacked(files) + room)
    return repo


@pytest.mark.parametrize("room", [0, -1])
def test_a_change_that_makes_the_store_larger_than_is_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    verdict = judged(full(tmp_path, monkeypatch, room).path)
    told = [saw for saw in of_503(verdict) if saw.endswith("after the merge, unpacked")]
    assert len(told) == -room
    assert (verdict.outcome is Outcome.FAST_TRACK) == (room == 0)


@pytest.mark.parametrize("removed", [False, True])
def test_what_stays_counts_and_what_the_change_removes_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removed: bool
) -> None:
    repo = Repo(tmp_path / "repo")
    tip = repo.commit("main", lane())
    old = stored(tmp_path / "old", statements_for(repo.path, tip))
    tip = repo.commit("main", old)
    topic = repo.commit("topic", EDIT, parent=tip)
    new = stored(tmp_path / "new", statements_for(repo.path, topic))
    repo.commit("topic", {**new, **(dict.fromkeys(old) if removed else {})})
    monkeypatch.setattr(store, "MAX_STORE_BYTES", max(map(unpacked, ({**old}, {**new}))))
    assert [saw.endswith("unpacked") for saw in of_503(judged(repo.path))] == [True] * (not removed)


@pytest.mark.parametrize("room", [0, -1])
def test_what_the_target_has_beyond_its_room_is_could_not_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    repo = full(tmp_path, monkeypatch, room)
    with read_revision(repo.path, "topic") as landed:
        tip = landed.head
    repo.commit("main", {}, parent=tip)
    repo.commit("after", {KERNEL: "SPEED = 3\n"}, parent=tip)
    verdict = judged(repo.path, "after")
    assert [f"{store.MAX_STORE_BYTES:,} bytes" in why for why in verdict.coverage.unknown] == (
        [True] * -room
    )
    assert verdict.outcome is (Outcome.ORDINARY_REVIEW if room else Outcome.NEEDS_EVIDENCE)


@pytest.mark.parametrize("room", [0, -1])
def test_a_folder_that_is_handed_in_beyond_its_room_is_could_not_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    repo, _, topic = changed(tmp_path)
    files = stored(tmp_path / "new", statements_for(repo.path, topic))
    monkeypatch.setattr(store, "MAX_STORE_BYTES", unpacked(files) + room)
    verdict = judged(repo.path, evidence=tmp_path / "new")
    assert len(verdict.coverage.unknown) == -room
    assert (verdict.outcome is Outcome.FAST_TRACK) == (room == 0)


def test_no_tier_is_told_of_a_store_that_was_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = full(tmp_path, monkeypatch, 0)
    with read_revision(repo.path, "topic") as revision:
        config = read_config(revision, folder=None, policy_file=None)
        (manifest,) = read_base_manifests(revision, config).valid.values()
        assert effective_tiers(revision, config, manifest, AS_OF)
        monkeypatch.setattr(store, "MAX_STORE_BYTES", store.MAX_STORE_BYTES - 1)
        with pytest.raises(FactUnavailable, match="what follows is not read: fasttrack evidence"):
            effective_tiers(revision, config, manifest, AS_OF)


def test_commands_say_that_a_store_was_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repo, files = Repo(tmp_path / "repo"), lane()
    write_files(repo.path, files)
    repo.commit("main", files)
    kept = stored(tmp_path / "new", statements_for(repo.path, "main"))
    repo.commit("main", kept)
    monkeypatch.setattr(store, "MAX_STORE_BYTES", unpacked(kept) - 1)
    monkeypatch.chdir(repo.path)
    for command, code in ((["list"], 0), (["plan"], 2)):
        assert run(["evidence", *command]) == code
        said = capsys.readouterr()
        assert f"{store.MAX_STORE_BYTES:,} bytes" in said.out + said.err


def test_a_hundred_broken_lines_do_not_hide_that_the_rest_was_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken, more = b"{\n" * 300, b"{}\n"
    monkeypatch.setattr(store, "MAX_STORE_BYTES", len(broken))
    files = [("a.dsse.jsonl", broken), ("b.dsse.jsonl", more)]
    contents = store._gathered(files, any_name=True)
    assert len(contents.problems) == store.MAX_PROBLEMS
    assert contents.unread.startswith("a store of over 600 bytes; b.dsse.jsonl and what follows")
    assert store._gathered(files[:1], any_name=True).unread == ""


@given(room=st.integers(0, 40), sizes=st.lists(st.integers(0, 15), max_size=4))
def test_a_tree_is_too_large_just_where_reading_leaves_something(
    tmp_path_factory: pytest.TempPathFactory, room: int, sizes: list[int]
) -> None:
    repo = Repo(tmp_path_factory.mktemp("room") / "repo")
    texts = {f"{KEPT}{number}.dsse.jsonl": "x" * size for number, size in enumerate(sizes)}
    repo.commit("main", {"a": "", **texts})
    with pytest.MonkeyPatch.context() as patch, read_change(repo.path, head="main") as change:
        patch.setattr(store, "MAX_STORE_BYTES", room)
        unread = read_tree(change.base, FOLDER, change.blob).unread
        assert is_too_large(change.base, FOLDER, change.blob) == bool(unread) == (sum(sizes) > room)


class Signers:
    """Stands for the change and its policy: keys whose ids are in capitals are good."""

    def __init__(self, kept: list[Stored], brought: list[Stored]) -> None:
        case = cast("Any", SimpleNamespace())
        nothing = Contents((), ())
        self.known = Known(case, (), Contents(tuple(brought), ()), nothing, "", (), tuple(kept))

    def told(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The places that are told."""

        def good(_: Known, signed: Signed) -> frozenset[str]:
            return frozenset(s.key_id for s in signed.signatures if s.key_id.isupper())

        monkeypatch.setattr(Known, "signers", good)
        return [problem.where for problem in repeats(self.known)]


def lines(where: str, texts: list[str]) -> list[Stored]:
    """Lines from texts such as `1Ab`: a payload, and who signed it."""
    return [
        Stored(
            f"{where}:{number}",
            Signed(text[:1].encode(), tuple(Signature(by, b"") for by in text[1:])),
            cast("Any", None),
        )
        for number, text in enumerate(texts, 1)
    ]


texts = st.lists(st.from_regex(r"[12][ABab]{0,2}", fullmatch=True), max_size=5)


@given(kept=texts, brought=texts)
def test_a_line_is_told_just_where_no_payload_and_no_good_signature_is_new(
    kept: list[str], brought: list[str]
) -> None:
    expected, there = [], list(kept)
    for number, text in enumerate(brought, 1):
        same = [one for one in there if one[0] == text[0]]
        new = {by for by in text[1:] if by.isupper()} - {by for one in same for by in one[1:]}
        if same and not new:
            expected.append(f"b:{number}")
        there.append(text)
    with pytest.MonkeyPatch.context() as patch:
        assert Signers(lines("a", kept), lines("b", brought)).told(patch) == expected


def test_a_line_that_only_the_folder_handed_in_has_too_is_no_repetition(tmp_path: Path) -> None:
    repo, _, topic = changed(tmp_path)
    repo.commit("topic", stored(tmp_path / "new", statements_for(repo.path, topic)))
    verdict = judged(repo.path, evidence=tmp_path / "new")
    assert of_503(verdict) == []
    assert set(statuses(verdict)) == {"covered"}
    assert verdict.outcome is Outcome.FAST_TRACK


@pytest.mark.parametrize("handed", [False, True])
def test_what_a_change_brings_is_looked_at_also_where_the_same_was_handed_in(
    tmp_path: Path, handed: bool
) -> None:
    repo, _, topic = changed(tmp_path)
    cells, inputs = owed_at(repo.path, "topic")
    (tested, *_) = (cell for cell in cells if cell.kind is Kind.KERNEL_TEST)
    other = {"run": "3" * 32, "content": {"seeds": (4, 5, 6)}}
    again = shown(tested, inputs[unit_of(tested)], **other)
    repo.commit("topic", stored(tmp_path / "new", [*statements_for(repo.path, topic), again]))
    verdict = judged(repo.path, evidence=tmp_path / "new" if handed else None)
    assert {f.rule for f in verdict.findings} == {"FT511"}
    assert all(f.path.startswith(KEPT) for f in verdict.findings)
    assert verdict.outcome is Outcome.ORDINARY_REVIEW
