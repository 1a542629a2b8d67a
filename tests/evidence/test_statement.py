# SPDX-License-Identifier: Apache-2.0
"""Statements: what is written is what is read, and nothing else is a statement."""

import json
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.errors import InputError
from fasttrack.evidence.predicates.common import Execution, Interval, Spread
from fasttrack.evidence.predicates.common import TestResults as Results
from fasttrack.evidence.predicates.sync_audit_v1 import AuditedKernel, AuditWaiver
from fasttrack.evidence.statement import (
    MAX_BYTES,
    MAX_PROBLEMS,
    Statement,
    read_json,
    read_statement,
)
from fasttrack.manifest.words import Metric
from fasttrack.vocabulary import Kind
from tests.evidence.strategies import (
    EXECUTION,
    GATE,
    GOOD,
    TYPES,
    digest,
    good,
    spread,
    statements,
)

KERNEL = GOOD[Kind.SYNC_AUDIT]["kernels"][0]
SETTING = GOOD[Kind.STRESS]["settings"][0]
DATE = date(2027, 1, 1)


@pytest.mark.parametrize("kind", Kind)
@given(data=st.data())
def test_what_is_written_is_read_again(kind: Kind, data: st.DataObject) -> None:
    statement = data.draw(statements(kind))
    raw = statement.to_bytes()
    again = read_statement(raw, "x")
    assert again == statement
    assert again.to_bytes() == raw
    assert again.cell == statement.cell
    assert raw.isascii()
    assert b"\n" not in raw


@given(statements())
def test_what_a_statement_shows_can_always_be_told(statement: Statement) -> None:
    assert all(isinstance(problem, str) and problem for problem in statement.problems())


def written(kind: Kind = Kind.KERNEL_TEST) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(good(kind).to_bytes())
    return whole


def edited(edit: Callable[[dict[str, Any]], object]) -> bytes:
    whole = written()
    edit(whole)
    return json.dumps(whole).encode()


def replaced(old: str, new: str) -> bytes:
    raw = good(Kind.KERNEL_TEST).to_bytes().decode()
    assert old in raw
    return raw.replace(old, new, 1).encode()


NO_STATEMENTS = {
    "nothing": b"",
    "no JSON": b"{",
    "a list": b"[]",
    "text that is not UTF-8": b'{"predicateType": "\xff"}',
    "UTF-16": good(Kind.KERNEL_TEST).to_bytes().decode().encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf" + good(Kind.KERNEL_TEST).to_bytes(),
    "two statements": good(Kind.KERNEL_TEST).to_bytes() * 2,
    "a key twice": replaced('"fallbacks":0', '"fallbacks":1,"fallbacks":0'),
    "a key twice, spelled differently": replaced(
        '"fallbacks":0', '"fallbacks":1,"fallb\\u0061cks":0'
    ),
    "a key twice in the outermost object": replaced(
        '"predicateType":', '"predicateType":"x","predicateType":'
    ),
    "NaN": replaced('"fallbacks":0', '"fallbacks":NaN'),
    "Infinity": replaced('"fallbacks":0', '"fallbacks":-Infinity'),
    "a number too large for a float": replaced('"fallbacks":0', '"fallbacks":1e999'),
    "a float for a count": replaced('"fallbacks":0', '"fallbacks":0.0'),
    "text for a count": replaced('"fallbacks":0', '"fallbacks":"0"'),
    "true for a count": replaced('"fallbacks":0', '"fallbacks":false'),
    "a number of ten thousand digits": replaced('"fallbacks":0', f'"fallbacks":{"9" * 10000}'),
    "an unknown key at the top": edited(lambda w: w.update(extra=1)),
    "an unknown key deep inside": edited(lambda w: w["predicate"]["run"].update(extra=1)),
    "no predicate type": edited(lambda w: w.pop("predicateType")),
    "a list as predicate type": edited(lambda w: w.update(predicateType=[])),
    "an unknown predicate type": edited(lambda w: w.update(predicateType="urn:x")),
    "another predicate's type": edited(lambda w: w.update(predicateType=TYPES[Kind.STRESS])),
    "another version of in-toto": edited(
        lambda w: w.update(_type="https://in-toto.io/Statement/v0.1")
    ),
    "no predicate": edited(lambda w: w.pop("predicate")),
    "a cell of another kind": edited(lambda w: w["predicate"]["cell"].update(kind="stress")),
    "no subject": edited(lambda w: w.update(subject=[])),
    "three subjects": edited(lambda w: w["subject"].append(w["subject"][0])),
    "subjects in the other order": edited(lambda w: w["subject"].reverse()),
    "a subject of another unit": edited(lambda w: w["subject"][0].update(name="unit/mla")),
    "a subject of other bytes": edited(
        lambda w: w["subject"][0]["digest"].update(sha256=digest("9"))
    ),
    "tests of other bytes": edited(lambda w: w["predicate"]["inputs"].update(tests=digest("9"))),
    "a digest in capitals": replaced(digest("a"), digest("A")),
    "a run that ends before it starts": edited(
        lambda w: w["predicate"]["run"].update(finished="2026-11-20T12:00:00Z")
    ),
    "a time that is not UTC": edited(
        lambda w: w["predicate"]["run"].update(finished="2026-11-20T14:30:00+01:00")
    ),
    "a time without a zone": edited(
        lambda w: w["predicate"]["run"].update(finished="2026-11-20T14:30:00")
    ),
    "an absolute path": edited(
        lambda w: w["predicate"]["inputs"].update(undeclared=["/etc/passwd"])
    ),
    "one byte too many": good(Kind.KERNEL_TEST).to_bytes().ljust(MAX_BYTES + 1),
    "a thousand lists in each other": b'{"predicateType":' + b"[" * 1000 + b"]" * 1000 + b"}",
    "a hundred thousand lists in each other": b"[" * 100_000 + b"]" * 100_000,
    "nesting inside the predicate": replaced(
        '"seeds":[', f'"seeds":{"[" * 5000}{"]" * 5000},"x":['
    ),
}


@pytest.mark.parametrize("name", NO_STATEMENTS)
def test_what_is_no_statement_is_bad_input(name: str) -> None:
    with pytest.raises(InputError) as caught:
        read_statement(NO_STATEMENTS[name], "source.jsonl:3")
    problems = caught.value.problems
    assert 1 <= len(problems) <= MAX_PROBLEMS
    assert all(p.where.startswith("source.jsonl:3") and p.want for p in problems)
    assert all(len(str(p)) < 1000 for p in problems)


@pytest.mark.parametrize("raw", [b'{"x": 1e999}', b"\xef\xbb\xbf{}", "{}".encode("utf-16"), b"[1]"])
def test_json_is_one_object_of_finite_numbers_in_utf_8(raw: bytes) -> None:
    with pytest.raises(InputError):
        read_json(raw, "x")
    assert read_json(b'{"x": 1e99}', "x") == {"x": 1e99}


def test_the_largest_statement_is_read() -> None:
    raw = good(Kind.KERNEL_TEST).to_bytes().ljust(MAX_BYTES)
    assert read_statement(raw, "x") == good(Kind.KERNEL_TEST)


def test_a_long_foreign_key_does_not_fill_the_message() -> None:
    with pytest.raises(InputError) as caught:
        read_statement(edited(lambda w: w.update({"k" * 100_000: 1})), "x")
    assert len(str(caught.value)) < 500


@given(st.binary(max_size=200) | st.text().map(str.encode))
def test_random_bytes_are_bad_input(raw: bytes) -> None:
    with pytest.raises(InputError):
        read_statement(raw, "x")


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    inside: dict[Any, Any] = {}
    if isinstance(value, dict):
        inside = value
    elif isinstance(value, list):
        inside = dict(enumerate(value))
    below = [place for key, item in inside.items() for place in places(item, (*here, key))]
    return [here, *below] if here else below


def test_what_came_after_a_first_version_is_written_only_where_it_says_something() -> None:
    """Statements that were signed before are read, and have the bytes that they had."""
    test, audit = written(Kind.KERNEL_TEST), written(Kind.SYNC_AUDIT)
    (launch,) = test["predicate"]["execution"]["launches"]
    assert launch == {"name": "kda_decode", "launches": 3, "cubin": None}
    assert "assembler" not in audit["predicate"]
    launch |= {"variant": "small", "unit": "kda"}
    audit["predicate"]["assembler"] = "ptxas"
    for whole in (test, audit):
        raw = json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()
        assert read_statement(raw, "x").to_bytes() == raw


@given(st.sampled_from(Kind), st.data())
def test_any_other_value_at_any_place_is_refused_or_says_what_it_says(
    kind: Kind, data: st.DataObject
) -> None:
    whole = written(kind)
    *path, last = data.draw(st.sampled_from(places(whole)))
    at: Any = whole
    for step in path:
        at = at[step]
    at[last] = data.draw(json_values)
    raw = json.dumps(whole).encode()
    try:
        statement = read_statement(raw, "x")
    except InputError:
        return
    assert json.loads(statement.to_bytes()) == json.loads(raw)
    statement.problems()


SHOWS_NOTHING: dict[str, tuple[Kind, dict[str, Any], str]] = {
    "a failed test": (
        Kind.KERNEL_TEST,
        {"results": Results(passed=("a",), failed=("b", "c"))},
        "2 tests failed, b first",
    ),
    "no test": (Kind.KERNEL_TEST, {"results": Results()}, "no test passed"),
    "only skipped tests": (
        Kind.KERNEL_TEST,
        {"results": Results(skipped=("a",))},
        "no test passed (all skipped)",
    ),
    **{
        f"a test that was {outcome}": (
            Kind.KERNEL_TEST,
            {"results": Results(passed=("a",), **{outcome: ("b",)})},
            "1 tests did not run, b first",
        )
        for outcome in ("skipped", "xfailed", "deselected")
    },
    "a fallback": (
        Kind.KERNEL_TEST,
        {"execution": EXECUTION.model_copy(update={"fallbacks": 2})},
        "2 steps fell back",
    ),
    "no launch": (
        Kind.KERNEL_TEST,
        {"execution": Execution(fallbacks=0)},
        "nothing of the path was seen to run",
    ),
    "a gate that did not pass": (
        Kind.KERNEL_TEST,
        {"gates": (GATE.model_copy(update={"passed": False}),)},
        "gate oracle did not pass",
    ),
    "a control that survived": (
        Kind.KERNEL_TEST,
        {"gates": (GATE.model_copy(update={"killed": 3}),)},
        "gate oracle let 1 negative controls pass",
    ),
    "more controls caught than given": (
        Kind.KERNEL_TEST,
        {"gates": (GATE.model_copy(update={"killed": 5}),)},
        "gate oracle caught more negative controls than it was given",
    ),
    "an admitted point": (
        Kind.REFUSAL,
        {"refused": False},
        "the gate admitted what is past the bound",
    ),
    "no reason": (Kind.REFUSAL, {"reasons": ()}, "the gate gave no reason"),
    "a refusal whose test failed": (
        Kind.REFUSAL,
        {"results": Results(failed=("a",))},
        "1 tests failed, a first",
    ),
    "a wrong result under stress": (
        Kind.STRESS,
        {"settings": (SETTING.model_copy(update={"wrong": 3}),)},
        "rank-skew: 3 of 200 wrong",
    ),
    "stress without a launch": (
        Kind.STRESS,
        {"execution": Execution(fallbacks=0)},
        "nothing of the path was seen to run",
    ),
    "a stress gate that did not pass": (
        Kind.STRESS,
        {"gates": (GATE.model_copy(update={"passed": False}),)},
        "gate oracle did not pass",
    ),
    "a violated kernel": (
        Kind.SYNC_AUDIT,
        {"kernels": (KERNEL, KERNEL.model_copy(update={"verdict": "violated"}))},
        "kda: violated",
    ),
    "an unproven kernel": (
        Kind.SYNC_AUDIT,
        {"kernels": (KERNEL.model_copy(update={"verdict": "unproven"}),)},
        "kda: unproven",
    ),
    "a score outside its interval": (
        Kind.MODEL_EVAL,
        {"score": 0.5},
        "a drop of 0.4 is outside its own interval",
    ),
    "an evaluation that fell back": (
        Kind.MODEL_EVAL,
        {"execution": EXECUTION.model_copy(update={"fallbacks": 1})},
        "1 steps fell back",
    ),
    "percentiles out of order": (
        Kind.PERFORMANCE,
        {"ours": spread(50.0).model_copy(update={"low": 60.0})},
        "percentiles 60, 50, 55 are not in order",
    ),
    "a ratio the wrong way round": (
        Kind.PERFORMANCE,
        {"ratio": spread(0.5)},
        "a ratio of 0.5 does not follow from the medians",
    ),
    "a ratio of equal sides": (
        Kind.PERFORMANCE,
        {"ours": spread(100.0), "ratio": spread(1.95)},
        "a ratio of 1.95 does not follow from the medians",
    ),
    "a ratio just too large": (
        Kind.PERFORMANCE,
        {"ratio": spread(2.21)},
        "a ratio of 2.21 does not follow from the medians",
    ),
    "a ratio just too small": (
        Kind.PERFORMANCE,
        {"ratio": spread(1.81)},
        "a ratio of 1.81 does not follow from the medians",
    ),
    "a better ratio of a median that is no better": (
        Kind.PERFORMANCE,
        {
            "ours": spread(100.0),
            "ratio": Spread(median=1.05, low=1.01, high=1.1, samples=10),
        },
        "a ratio of 1.05, and medians that are no better than the baseline's",
    ),
    "a time read as a rate": (
        Kind.PERFORMANCE,
        {"metric": Metric.DECODE_TOKENS_PER_S},
        "a ratio of 2 does not follow from the medians",
    ),
    "a performance without a launch": (
        Kind.PERFORMANCE,
        {"execution": Execution(fallbacks=0)},
        "nothing of the path was seen to run",
    ),
    "medians too far apart to divide": (
        Kind.PERFORMANCE,
        {"ours": spread(1e-320), "baseline": spread(1e11)},
        "a ratio of 2 does not follow from the medians",
    ),
    "medians too far apart the other way": (
        Kind.PERFORMANCE,
        {"ours": spread(1e11), "baseline": spread(1e-320)},
        "a ratio of 2 does not follow from the medians",
    ),
}


@pytest.mark.parametrize("kind", Kind)
def test_a_good_statement_shows_something(kind: Kind) -> None:
    assert good(kind).problems() == []


@pytest.mark.parametrize("name", SHOWS_NOTHING)
def test_a_statement_that_shows_nothing_says_why(name: str) -> None:
    kind, content, said = SHOWS_NOTHING[name]
    statement = read_statement(good(kind, content).to_bytes(), "x")
    assert said in statement.problems()


def test_every_kind_has_a_way_of_showing_nothing() -> None:
    assert {kind for kind, _, _ in SHOWS_NOTHING.values()} == set(Kind)


@pytest.mark.parametrize("kind", Kind)
def test_a_file_that_nobody_declared_makes_every_kind_incomplete(kind: Kind) -> None:
    statement = good(kind)
    inputs = statement.predicate.inputs.model_copy(update={"undeclared": ("a.py", "b.py")})
    predicate = statement.predicate.model_copy(update={"inputs": inputs})
    (said,) = Statement(statement.predicate_type, predicate).problems()
    assert said == "2 files were read that nobody declared, a.py first"


def test_stress_in_one_process_shows_nothing() -> None:
    statement = good(Kind.STRESS)
    run = statement.predicate.run.model_copy(update={"isolation": "process"})
    predicate = statement.predicate.model_copy(update={"run": run})
    assert predicate.problems() == ["the measured process could write its own result"]


def test_a_waiver_of_the_same_code_is_accepted_and_one_of_other_code_is_not() -> None:
    def problems(waived: str) -> list[str]:
        waiver = AuditWaiver(skeleton=waived, reason="read", owner="ann", expires=DATE)
        kernel = AuditedKernel(name="kda", verdict="unproven", skeleton=digest("e"), waiver=waiver)
        return good(Kind.SYNC_AUDIT, {"kernels": (kernel,)}).problems()

    assert problems(digest("e")) == []
    assert problems(digest("f")) == ["kda: the waiver is for other code"]


def test_an_interval_from_high_to_low_shows_nothing() -> None:
    drop = Interval(low=0.01, high=-0.01, confidence=0.95)
    assert "interval 0.01 to -0.01" in good(Kind.MODEL_EVAL, {"drop": drop}).problems()


def test_a_violated_kernel_can_not_be_waived() -> None:
    waiver = AuditWaiver(skeleton=digest("e"), reason="read", owner="ann", expires=DATE)
    kernel = KERNEL.model_copy(update={"verdict": "violated", "waiver": waiver})
    assert good(Kind.SYNC_AUDIT, {"kernels": (kernel,)}).problems() == ["kda: violated"]
