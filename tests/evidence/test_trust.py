# SPDX-License-Identifier: Apache-2.0
"""Whose statements count, reason by reason, and how pools are counted."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import combinations, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.evidence.predicates.common import TestResults as Results
from fasttrack.evidence.statement import Statement
from fasttrack.evidence.trust import (
    DEFAULT_MAX_AGE_DAYS,
    Judged,
    Reason,
    Signatures,
    judge,
    question,
    shortfall,
)
from fasttrack.policy.trust import Key, Trust
from fasttrack.vocabulary import Kind
from tests.evidence.keys import DAY, key, trust
from tests.evidence.strategies import FINISHED, digest, good, statements

STATEMENT = good(Kind.KERNEL_TEST)
RUN_DAY = FINISHED.date()
FAILED = {"results": Results(failed=("a",))}


def by(*ids: str, invalid: Sequence[str] = ()) -> Signatures:
    """Signatures of these keys, some of them not valid."""
    return Signatures(ids, frozenset(ids) - set(invalid))


def one(statement: Statement, signatures: Signatures, asked: Trust, day: date = DAY) -> Judged:
    (judged,) = judge([(statement, signatures)], asked, day)
    return judged


def reasons(judged: Judged) -> list[str]:
    return [refusal.reason.value for refusal in judged.refusals]


def test_a_runner_s_statement_counts_for_its_pool() -> None:
    judged = one(STATEMENT, by("lab"), trust())
    assert judged == Judged(STATEMENT, True, frozenset({"lab-pool"}), ())


KEY_FAULTS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "revoked before the run": ({"revoked": date(2026, 10, 1)}, ["revoked-key"]),
    "revoked after the run": ({"revoked": date(2026, 11, 28)}, ["revoked-key"]),
    "revoked on the judged day": ({"revoked": DAY}, ["revoked-key"]),
    "to be revoked tomorrow": ({"revoked": DAY + timedelta(1)}, []),
    "expired the day before the run": (
        {"valid_until": RUN_DAY - timedelta(1)},
        ["expired-key"],
    ),
    "expired on the day of the run": ({"valid_until": RUN_DAY}, []),
    "expired between run and judgement": ({"valid_until": RUN_DAY + timedelta(1)}, []),
    "valid from the day after the run": (
        {"valid_from": RUN_DAY + timedelta(1)},
        ["key-not-yet-valid"],
    ),
    "valid from the day of the run": ({"valid_from": RUN_DAY}, []),
    "a reviewer's": ({"roles": ("reviewer", "release")}, ["wrong-role"]),
    "a reviewer's and a runner's": ({"roles": ("reviewer", "runner")}, []),
    "for another kind": ({"kinds": (Kind.STRESS,)}, ["wrong-kind"]),
    "for other hardware": ({"hardware": ("gb300", "cpu")}, ["wrong-hardware"]),
    "all of it": (
        {
            "revoked": DAY,
            "valid_until": date(2026, 1, 2),
            "roles": ("release",),
            "kinds": (Kind.STRESS,),
            "hardware": ("cpu",),
        },
        ["revoked-key", "expired-key", "wrong-role", "wrong-kind", "wrong-hardware"],
    ),
}


@pytest.mark.parametrize("name", KEY_FAULTS)
def test_a_key_counts_for_what_it_may_sign(name: str) -> None:
    changes, expected = KEY_FAULTS[name]
    judged = one(STATEMENT, by("lab"), trust(key("lab", **changes)))
    assert reasons(judged) == expected
    assert judged.accepted == (not expected)
    assert all("lab" in refusal.text for refusal in judged.refusals)


def test_a_refusal_is_judged_by_the_machine_that_asked_not_by_the_cell() -> None:
    asked = {"values": {"hardware": "gb300", "bound": "rows"}, "unit": "gate"}
    on_cpu = good(Kind.REFUSAL, hardware="cpu", **asked)
    assert one(on_cpu, by("lab"), trust(key("lab", hardware=("cpu",)))).accepted
    elsewhere = one(on_cpu, by("lab"), trust(key("lab", hardware=("gb300",))))
    assert reasons(elsewhere) == ["wrong-hardware"]


def test_a_key_of_nobody_and_a_signature_that_is_not_its_key_s_are_told_apart() -> None:
    judged = one(STATEMENT, by("stranger", "lab", invalid=["stranger", "lab"]), trust())
    assert reasons(judged) == ["unknown-key", "bad-signature"]
    assert not judged.accepted


def test_a_name_in_valid_that_the_policy_does_not_have_counts_for_nothing() -> None:
    assert not one(STATEMENT, by("stranger"), trust()).accepted


def test_a_statement_without_a_signature_does_not_count() -> None:
    assert not one(STATEMENT, by(), trust()).accepted


def test_a_signature_that_does_not_count_leaves_the_others_alone() -> None:
    judged = one(STATEMENT, by("lab", "stranger", invalid=["stranger"]), trust())
    assert judged.accepted
    assert reasons(judged) == ["unknown-key"]


@pytest.mark.parametrize(
    ("age", "limit", "expected"),
    [
        (0, None, []),
        (DEFAULT_MAX_AGE_DAYS, None, []),
        (DEFAULT_MAX_AGE_DAYS + 1, None, ["too-old"]),
        (7, 7, []),
        (8, 7, ["too-old"]),
        (-1, None, ["from-the-future"]),
    ],
)
def test_evidence_ages_from_the_day_its_run_ended(
    age: int, limit: int | None, expected: list[str]
) -> None:
    ages = {} if limit is None else {Kind.KERNEL_TEST: limit}
    asked = trust(key("lab", valid_until=date(2030, 1, 1)), max_age_days=ages)
    judged = one(STATEMENT, by("lab"), asked, RUN_DAY + timedelta(age))
    assert reasons(judged) == expected


def test_another_kind_s_age_does_not_matter() -> None:
    assert one(STATEMENT, by("lab"), trust(max_age_days={Kind.STRESS: 1})).accepted


@pytest.mark.parametrize("finished", [datetime.min, datetime.max.replace(microsecond=0)])
def test_runs_at_the_ends_of_time_are_judged(finished: datetime) -> None:
    moment = finished.replace(tzinfo=UTC) + (
        timedelta(days=1) if finished.year == 1 else timedelta()
    )
    assert not one(good(Kind.KERNEL_TEST, finished=moment), by("lab"), trust()).accepted


def test_a_statement_that_shows_nothing_does_not_count_and_says_why() -> None:
    judged = one(good(Kind.KERNEL_TEST, FAILED), by("lab"), trust())
    assert not judged.accepted
    assert [(r.reason, r.text) for r in judged.refusals] == [
        (Reason.SHOWS_NOTHING, "1 tests failed, a first")
    ]


TWO = {Kind.KERNEL_TEST: 2}


def second(**changes: Any) -> Statement:
    """The same question, answered by another run."""
    return good(Kind.KERNEL_TEST, **({"run": "3" * 32} | changes))


SAME_POOL = trust(key("lab"), key("cloud", pool="lab-pool"), thresholds=TWO)
THRESHOLDS: dict[str, tuple[Trust, list[tuple[Statement, Signatures]], list[bool]]] = {
    "one of two": (trust(thresholds=TWO), [(STATEMENT, by("lab"))], [False]),
    "two envelopes of two pools": (
        trust(thresholds=TWO),
        [(STATEMENT, by("lab")), (second(), by("cloud"))],
        [True, True],
    ),
    "one run that two pools signed": (
        trust(thresholds=TWO),
        [(STATEMENT, by("lab", "cloud"))],
        [False],
    ),
    "one run that two pools signed one after the other": (
        trust(thresholds=TWO),
        [(STATEMENT, by("lab")), (STATEMENT, by("cloud"))],
        [False, False],
    ),
    "a run that two pools signed, and another": (
        trust(thresholds=TWO),
        [(STATEMENT, by("lab", "cloud")), (second(), by("lab"))],
        [True, True],
    ),
    "a run that three pools signed, and two more of one of them": (
        trust(key("lab"), key("cloud"), key("third"), thresholds={Kind.KERNEL_TEST: 3}),
        [
            (STATEMENT, by("lab", "cloud", "third")),
            (second(), by("lab")),
            (second(run="4" * 32), by("lab")),
        ],
        [False, False, False],
    ),
    "two envelopes of one pool": (
        trust(thresholds=TWO),
        [(STATEMENT, by("lab")), (second(), by("lab"))],
        [False, False],
    ),
    "two keys of one pool": (SAME_POOL, [(STATEMENT, by("lab", "cloud"))], [False]),
    "two pools, one signature bad": (
        trust(thresholds=TWO),
        [(STATEMENT, by("lab", "cloud", invalid=["cloud"]))],
        [False],
    ),
    "two pools, one statement shows nothing": (
        trust(thresholds=TWO),
        [(STATEMENT, by("lab")), (good(Kind.KERNEL_TEST, FAILED, run="3" * 32), by("cloud"))],
        [False, False],
    ),
    "two pools, one too old": (
        trust(thresholds=TWO),
        [
            (STATEMENT, by("lab")),
            (second(finished=FINISHED - timedelta(days=DEFAULT_MAX_AGE_DAYS)), by("cloud")),
        ],
        [False, False],
    ),
    "two pools, other unit bytes": (
        trust(thresholds=TWO),
        [(STATEMENT, by("lab")), (second(digest=digest("9")), by("cloud"))],
        [False, False],
    ),
    "two pools, other tests": (
        trust(thresholds=TWO),
        [(STATEMENT, by("lab")), (second(tests=digest("9")), by("cloud"))],
        [False, False],
    ),
    "two pools, another cell": (
        trust(thresholds=TWO),
        [(STATEMENT, by("lab")), (second(values={"unit": "kda", "rows": 5}), by("cloud"))],
        [False, False],
    ),
    "three of two, the third from one of the pools": (
        trust(thresholds=TWO),
        [(STATEMENT, by("lab")), (second(), by("cloud")), (second(run="4" * 32), by("lab"))],
        [True, True, True],
    ),
    "a threshold of another kind": (
        trust(thresholds={Kind.STRESS: 2}),
        [(STATEMENT, by("lab"))],
        [True],
    ),
}


@pytest.mark.parametrize("name", THRESHOLDS)
def test_a_threshold_counts_distinct_pools_that_say_the_same(name: str) -> None:
    asked, signed, expected = THRESHOLDS[name]
    judged = judge(signed, asked, DAY)
    assert [one.accepted for one in judged] == expected
    missing = [reasons(one)[-1] for one in judged if not one.accepted]
    assert set(missing) <= {"below-threshold", "shows-nothing", "too-old"}


def test_what_a_threshold_lacks_is_told_pools_or_runs() -> None:
    def lacking(*signed: tuple[Statement, Signatures]) -> str:
        return judge(signed, trust(thresholds=TWO), DAY)[0].refusals[-1].text

    assert lacking((STATEMENT, by("lab")), (second(), by("lab"))) == (
        "1 of 2 pools say so: lab-pool"
    )
    assert lacking((STATEMENT, by("lab", "cloud"))) == (
        "1 of 2 pools say so of a run of their own: cloud-pool, lab-pool"
    )


pool_runs = st.tuples(st.sets(st.sampled_from("pqrs"), min_size=1), st.sampled_from("12345"))


@given(st.lists(pool_runs, max_size=6), st.integers(1, 4))
def test_a_threshold_is_reached_when_every_pool_can_be_given_a_run_of_its_own(
    said: list[tuple[set[str], str]], wanted: int
) -> None:
    agreeing = [Judged(second(run=run * 32), True, frozenset(pools), ()) for pools, run in said]
    edges = {(pool, run) for pools, run in said for pool in pools}
    reached = any(
        all((pool, run) in edges for pool, run in zip(pools, runs, strict=True))
        for pools in combinations("pqrs", wanted)
        for runs in permutations("12345", wanted)
    )
    asked = trust(thresholds={Kind.KERNEL_TEST: wanted})
    assert (not shortfall(agreeing, Kind.KERNEL_TEST, asked)) == reached


def test_regions_do_not_keep_statements_of_one_cell_apart() -> None:
    other = second()
    cell = other.predicate.cell.model_copy(update={"region": "other"})
    moved = Statement(other.predicate_type, other.predicate.model_copy(update={"cell": cell}))
    judged = judge([(STATEMENT, by("lab")), (moved, by("cloud"))], trust(thresholds=TWO), DAY)
    assert all(one.accepted for one in judged)


REUSES: dict[str, tuple[list[tuple[Statement, Signatures]], list[list[str]]]] = {
    "the same payload twice": ([(STATEMENT, by("lab")), (STATEMENT, by("cloud"))], [[], []]),
    "another payload": (
        [(STATEMENT, by("lab")), (good(Kind.KERNEL_TEST, {"seeds": (9,)}), by("lab"))],
        [["run-id-reused"], ["run-id-reused"]],
    ),
    "another payload after a failure": (
        [(good(Kind.KERNEL_TEST, FAILED), by("lab")), (STATEMENT, by("lab"))],
        [["shows-nothing", "run-id-reused"], ["run-id-reused"]],
    ),
    "another cell": (
        [(STATEMENT, by("lab")), (good(Kind.KERNEL_TEST, values={"rows": 8}), by("lab"))],
        [[], []],
    ),
    "another run": ([(STATEMENT, by("lab")), (second(), by("lab"))], [[], []]),
    "another payload by nobody": (
        [
            (STATEMENT, by("lab")),
            (good(Kind.KERNEL_TEST, {"seeds": (9,)}), by("stranger", invalid=["stranger"])),
        ],
        [[], ["unknown-key"]],
    ),
    "another payload with a forged signature": (
        [
            (STATEMENT, by("lab")),
            (good(Kind.KERNEL_TEST, {"seeds": (9,)}), by("lab", invalid=["lab"])),
        ],
        [[], ["bad-signature"]],
    ),
}


@pytest.mark.parametrize("name", REUSES)
def test_a_run_that_said_two_things_of_one_cell_counts_in_neither(name: str) -> None:
    signed, expected = REUSES[name]
    assert [reasons(one) for one in judge(signed, trust(), DAY)] == expected
    backwards = judge(signed[::-1], trust(), DAY)[::-1]
    assert [reasons(one) for one in backwards] == expected


def test_every_reason_is_a_stable_word() -> None:
    assert {reason.value for reason in Reason} == {
        "unknown-key", "unknown-identity", "not-verifiable", "bad-signature", "revoked-key",
        "key-not-yet-valid", "expired-key", "wrong-role", "wrong-kind", "wrong-hardware",
        "too-old", "from-the-future", "shows-nothing", "run-id-reused", "below-threshold",
    }  # fmt: skip


keys = st.builds(
    key,
    st.sampled_from(["lab", "cloud", "third"]),
    pool=st.sampled_from(["p", "q"]),
    revoked=st.none() | st.dates(date(2026, 11, 1), date(2026, 12, 31)),
    roles=st.sampled_from([("runner",), ("reviewer",)]),
    kinds=st.sampled_from([tuple(Kind), (Kind.STRESS,)]),
    hardware=st.sampled_from([("h200",), ("cpu",)]),
    valid_from=st.dates(date(2026, 1, 1), date(2026, 11, 29)),
)
answers = st.builds(
    lambda run, rows, age: good(
        Kind.KERNEL_TEST,
        run=run * 32,
        values={"rows": rows},
        finished=FINISHED - timedelta(days=age),
    ),
    st.sampled_from("34"),
    st.sampled_from([1, 2]),
    st.sampled_from([0, 85]),
)
signed_answers = st.lists(
    st.tuples(
        answers,
        st.builds(
            lambda named, valid: Signatures(tuple(named), frozenset(valid)),
            st.lists(st.sampled_from(["lab", "cloud", "third"]), unique=True),
            st.sets(st.sampled_from(["lab", "cloud", "third"])),
        ),
    ),
    max_size=6,
)


def counts(key: Key, statement: Statement, day: date) -> bool:
    """The rule for one key once more, as one sentence."""
    run_day = statement.predicate.run.finished.date()
    return (
        not (key.revoked and key.revoked <= day)
        and key.valid_from <= run_day <= key.valid_until
        and "runner" in key.roles
        and statement.cell.kind in key.kinds
        and statement.predicate.machine.hardware in key.hardware
    )


@given(st.lists(keys, unique_by=lambda k: k.id, max_size=3), signed_answers, st.integers(1, 2))
def test_accepted_is_what_a_second_formulation_accepts(
    listed: list[Key], signed: list[tuple[Statement, Signatures]], threshold: int
) -> None:
    asked = Trust(keys=tuple(listed), thresholds={Kind.KERNEL_TEST: threshold})
    pools = [
        {
            k.pool
            for k in listed
            if k.id in signatures.named and k.id in signatures.valid and counts(k, s, DAY)
        }
        for s, signatures in signed
    ]
    trusted = [s for (s, _), found in zip(signed, pools, strict=True) if found]
    counting = [
        bool(found)
        and (DAY - s.predicate.run.finished.date()).days <= DEFAULT_MAX_AGE_DAYS
        and all(
            other == s
            for other in trusted
            if (other.predicate.run.run, other.cell) == (s.predicate.run.run, s.cell)
        )
        for (s, _), found in zip(signed, pools, strict=True)
    ]
    expected = []
    for ok, (s, _) in zip(counting, signed, strict=True):
        alike = [i for i, (t, _) in enumerate(signed) if counting[i] and question(t) == question(s)]
        agreeing = set().union(*(pools[i] for i in alike))
        runs = {signed[i][0].predicate.run.run for i in alike}
        # Up to two, one pool or one run is all that can be in the way.
        expected.append(ok and threshold <= min(len(agreeing), len(runs)))
    judged = judge(signed, asked, DAY)
    assert [one.accepted for one in judged] == expected
    assert all(one.accepted or one.refusals or not one.pools for one in judged)


@given(statements(), st.dates())
def test_any_statement_on_any_day_is_judged(statement: Statement, day: date) -> None:
    hardware = statement.predicate.machine.hardware
    asked = trust(
        key("lab", hardware=(hardware,), valid_from=date.min, valid_until=date.max),
        max_age_days={statement.cell.kind: 3650},
    )
    (judged,) = judge([(statement, by("lab"))], asked, day)
    assert judged.accepted == (not judged.refusals)
    assert judged.accepted <= (not statement.problems())
