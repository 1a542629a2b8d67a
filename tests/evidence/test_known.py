# SPDX-License-Identifier: Apache-2.0
"""Which signatures a case verifies: as few as can change an answer, and never one too few."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fasttrack.case import Case
from fasttrack.evidence import known as module
from fasttrack.evidence.accept import accept
from fasttrack.evidence.dsse import Signed, read_envelope, sign
from fasttrack.evidence.known import Known
from fasttrack.evidence.store import Contents, Stored
from fasttrack.evidence.trust import Signatures
from fasttrack.policy.trust import Trust
from fasttrack.testing import Repo
from fasttrack.vocabulary import Kind
from tests.evidence.keys import DAY, key, signer, trust
from tests.evidence.lanes import RUN_DAY, judged, lane, statements_for, statuses, stored, trusting
from tests.evidence.strategies import digest, good
from tests.evidence.test_covered_changes import EDIT

TRUST = trust(thresholds={Kind.KERNEL_TEST: 2})
SIGNERS = ("lab", "cloud", "nobody")
NOTHING = Contents((), ())
Said = tuple[int, str, int, int, int, str]
"""Rows of the cell, letter of the bytes, plan, run, what was seen, and who signed."""

sayings = st.tuples(
    st.integers(1, 2),
    st.sampled_from("ab"),
    st.integers(1, 2),
    st.integers(1, 3),
    st.integers(1, 2),
    st.sampled_from(SIGNERS),
)


def statement_of(said: Said) -> Stored:
    rows, letter, plan, run, seed, by = said
    made = good(
        Kind.KERNEL_TEST,
        {"seeds": (seed,)},
        values={"unit": "kda", "rows": rows},
        digest=digest(letter),
        plan=f"{plan:032x}",
        run=f"{run:032x}",
    )
    return Stored("x:1", read_envelope(sign(made, signer(by)), "x"), made)


def known(kept: tuple[Stored, ...], brought: tuple[Stored, ...] = ()) -> Known:
    case = SimpleNamespace(policy=SimpleNamespace(trust=TRUST), as_of=DAY)
    return Known(cast("Case", case), kept, Contents(brought, ()), NOTHING, "")


@given(st.lists(sayings, min_size=1, max_size=8, unique=True), st.data())
@example([(1, "a", 1, 1, 1, "lab"), (1, "a", 2, 2, 1, "cloud")], None)
@example([(1, "a", 1, 1, 1, "lab"), (1, "a", 2, 2, 1, "cloud"), (1, "b", 3, 2, 1, "cloud")], None)
def test_what_is_left_unverified_changes_no_answer(said: list[Said], data: Any) -> None:
    every = tuple(statement_of(one) for one in said)
    whole = {one.signed: found for one, found in zip(every, accept(every, TRUST, DAY), strict=True)}
    chosen = every[:1] if data is None else data.draw(st.lists(st.sampled_from(every), min_size=1))
    split = len(every) // 2
    found = known(every[:split], every[split:]).judged(chosen)
    assert {one.signed for one in chosen} <= {one.signed for one, _ in found}
    assert {one.signed: its for one, its in found}.items() <= whole.items()


@pytest.mark.parametrize(
    ("other", "tied"),
    [
        ((1, "a", 2, 2, 1, "lab"), True),  # one question
        ((1, "b", 1, 2, 1, "lab"), True),  # one plan
        ((1, "b", 2, 1, 1, "lab"), True),  # one run
        ((1, "b", 2, 2, 1, "lab"), False),
        ((2, "a", 1, 1, 1, "lab"), False),  # of another cell
    ],
)
def test_statements_are_tied_by_question_plan_and_run_of_one_cell(other: Said, tied: bool) -> None:
    mine, its = statement_of((1, "a", 1, 1, 1, "lab")), statement_of(other)
    found = known((mine, its)).judged([mine])
    assert [one for one, _ in found] == [mine, its][: 1 + tied]


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> list[Signed]:
    """The envelopes that are verified."""
    seen: list[Signed] = []
    verify: Callable[[Signed, Trust], Signatures] = module.signatures

    def counted(signed: Signed, under: Trust) -> Signatures:
        seen.append(signed)
        return verify(signed, under)

    monkeypatch.setattr(module, "signatures", counted)
    return seen


@pytest.mark.parametrize("by", ["lab", "nobody"])
def test_evidence_of_other_bytes_is_stale_whoever_signed_it_and_nobody_asks(
    tmp_path: Path, verified: list[Signed], by: str
) -> None:
    repo = Repo(tmp_path / "repo")
    tip = repo.commit("main", lane())
    tip = repo.commit("main", stored(tmp_path / "new", statements_for(repo.path, tip), by))
    repo.commit("topic", EDIT, parent=tip)
    assert set(statuses(judged(repo.path))) == {"stale"}
    assert verified == []


@pytest.mark.parametrize(("by", "status"), [("lab", "stale"), ("nobody", "covered")])
def test_a_run_that_also_spoke_of_other_bytes_covers_nothing_if_somebody_trusted_says_so(
    tmp_path: Path, by: str, status: str
) -> None:
    repo = Repo(tmp_path / "repo")
    tip = repo.commit("main", lane())
    run = {"run": "7" * 32, "finished": RUN_DAY - timedelta(days=1)}
    told = statements_for(repo.path, tip, **run, plan="8" * 32)
    tip = repo.commit("main", stored(tmp_path / "a", told, by))
    topic = repo.commit("topic", EDIT, parent=tip)
    files = stored(tmp_path / "b", statements_for(repo.path, topic, **run))
    repo.commit("topic", files, parent=topic)
    assert set(statuses(judged(repo.path))) == {status}


def test_the_second_pool_of_a_cell_may_lie_in_the_target(tmp_path: Path) -> None:
    keys = [key(one, hardware=("h100",)) for one in ("lab", "cloud")]
    policy = trusting(*keys, thresholds=dict.fromkeys(map(str, Kind), 2))
    repo = Repo(tmp_path / "repo")
    tip = repo.commit("main", lane(policy=policy))
    topic = repo.commit("topic", EDIT, parent=tip)
    theirs = statements_for(repo.path, topic, run="7" * 32)
    cloud = stored(tmp_path / "a", theirs, "cloud")
    tip = repo.commit("main", cloud, parent=tip)
    topic = repo.commit("topic", EDIT, parent=tip)
    assert set(statuses(judged(repo.path))) == {"untrusted"}
    repo.commit("topic", stored(tmp_path / "b", statements_for(repo.path, topic)), parent=topic)
    assert set(statuses(judged(repo.path))) == {"covered"}
