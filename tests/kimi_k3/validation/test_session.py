# SPDX-License-Identifier: Apache-2.0
"""What a candidate's process can do to the judge: nothing but be refused."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kimi_k3.validation import server
from kimi_k3.validation import session as sessions
from kimi_k3.validation.bench import Bench, size_for
from kimi_k3.validation.budget import BUDGETS
from kimi_k3.validation.case import Case
from kimi_k3.validation.controls.candidates import honest_candidate
from kimi_k3.validation.controls.run import gate_named, judged
from kimi_k3.validation.draw import some
from kimi_k3.validation.gates import State
from kimi_k3.validation.session import CandidateError, Session
from kimi_k3.validation.trial import Seen, untouched
from kimi_k3.validation.wall import allowed

PROGRAMS = "tests.kimi_k3.validation.programs:program"


@contextmanager
def bench(kind: str = "") -> Iterator[Bench]:
    candidate = honest_candidate("mix")
    if kind:
        candidate = replace(candidate, entry=PROGRAMS, arguments={"kind": kind})
    with Bench(candidate, BUDGETS["smoke"], 1) as made:
        yield made


def call(made: Bench) -> Seen:
    rng = made.rng("a test")
    (case,) = some(made.candidate, rng, 1)
    return made.tried(made.prepared(case, rng))


def test_an_honest_call_is_seen_with_its_launches() -> None:
    with bench() as made:
        seen = call(made)
        assert seen.faults == ()
        assert not seen.late
        declared = {(one.name, one.digest): 1 for one in made.candidate.kernels}
        assert seen.told.launches == declared
        assert (list(seen.told.foreign), list(seen.told.asked)) == ([], [])


def test_a_process_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    with bench("hangs") as made:
        session = made.session()
        monkeypatch.setattr(sessions, "ANSWER_S", 0.5)
        with pytest.raises(CandidateError, match="no answer"):
            call(made)
        with pytest.raises(CandidateError, match="ended"):
            session.replay()


def test_a_process_that_ends_is_told_apart_from_a_gate_that_fails() -> None:
    with bench("ends") as made:
        with pytest.raises(CandidateError, match="ended"):
            call(made)
        made.lost()
        outcome = judged(gate_named("numerics"), made)
        assert outcome.state is State.FAILED
        assert "ended" in outcome.findings[0]


def test_an_answer_to_nothing_that_was_asked_is_refused() -> None:
    with bench("forges") as made, pytest.raises(CandidateError, match="answer"):
        call(made)


@pytest.mark.parametrize("kind", ["half", "babbles", "huge"])
def test_a_message_that_is_none_is_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HALF_S", 1)
    with bench(kind) as made, pytest.raises(CandidateError, match="answer"):
        call(made)


def test_an_error_of_the_program_is_an_answer() -> None:
    with bench("raises") as made:
        assert "ValueError: no" in call(made).faults[0]


def test_the_oracle_is_not_to_be_had_and_asking_is_told() -> None:
    with bench("asks") as made:
        told = call(made).told
        assert told.error == ""
        assert list(told.asked) == ["kimi_k3.reference"]


def test_a_program_that_needs_the_oracle_does_not_start() -> None:
    with bench("oracle-at-start") as made, pytest.raises(CandidateError, match="reference"):
        made.session()


def test_another_variant_takes_the_place_of_this_one() -> None:
    with bench() as made:
        call(made)
        made.session().load(replace(made.candidate, entry=PROGRAMS, arguments={"kind": "raises"}))
        assert "ValueError: no" in call(made).faults[0]
        with pytest.raises(CandidateError, match="KeyError"):
            made.session().load(replace(made.candidate, entry=PROGRAMS, arguments={"kind": "?"}))


@pytest.mark.parametrize(
    ("name", "may"),
    [
        ("torch", True),
        ("kimi_k3", True),
        ("kimi_k3.decode", True),
        ("kimi_k3.decode.kernels.launch", True),
        ("kimi_k3.decode.executor", False),
        ("kimi_k3.decode.kernelsX", False),
        ("kimi_k3.reference", False),
        ("kimi_k3.operators.residual", False),
        ("kimi_k3.stock.cuda.mix", False),
        ("kimi_k3.validation", True),
        ("kimi_k3.validation.operators.attn_res", False),
        ("kimi_k3.validation.judge", False),
        ("kimi_k3.validation.controls.mix_cheats", True),
    ],
)
def test_a_candidate_has_its_own_side_of_this_package_alone(name: str, may: bool) -> None:
    assert allowed(name) is may


def test_no_module_that_knows_an_answer_is_in_the_process() -> None:
    with bench() as made:
        names = [Path(path).as_posix() for path in made.session().files]
        assert any(name.endswith("validation/child.py") for name in names)
        for known in ("/reference/", "/operators/", "/stock/", "/gates/"):
            assert not [name for name in names if known in name]


def test_a_ghost_call_writes_nothing() -> None:
    with bench() as made:
        rng = made.rng("a test")
        (case,) = some(made.candidate, rng, 1)
        same, told = untouched(made.session(), made.prepared(case, rng))
        assert same
        assert told.launches


def test_a_lent_process_that_ended_fails_its_other_variants() -> None:
    honest = honest_candidate("mix")
    ends = replace(honest, entry=PROGRAMS, arguments={"kind": "ends"})
    with Session(honest, size_for(honest)) as lent:
        for candidate, state in (
            (honest, State.PASSED),
            (ends, State.FAILED),
            (honest, State.FAILED),
        ):
            with Bench(candidate, BUDGETS["smoke"], 1, lent=lent) as made:
                assert judged(gate_named("memory"), made).state is state


def test_memory_and_home_are_given_back() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with bench() as made:
        call(made)
        home = Path(made.session()._home.name)
        assert home.is_dir()
    assert not home.exists()
    with bench() as made:
        call(made)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2


def test_calls_have_other_addresses_each_time() -> None:
    with bench() as made:
        rng = made.rng("a test")
        case = Case(made.candidate, 3, {"saved": 2}, "normal", 5)
        offsets = {made.prepared(case, rng).layouts[0]["out"].offset for _ in range(20)}
        assert len(offsets) >= 15
