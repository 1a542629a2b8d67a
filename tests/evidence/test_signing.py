# SPDX-License-Identifier: Apache-2.0
"""What a bundle must be to be signed, and what signing again does."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from fasttrack.errors import InputError
from fasttrack.evidence.accept import accept
from fasttrack.evidence.bundle import Entry
from fasttrack.evidence.child import Outcome
from fasttrack.evidence.departure import Departure, Near
from fasttrack.evidence.derived import Derived
from fasttrack.evidence.digest import InputFile
from fasttrack.evidence.dsse import read_envelope, sign
from fasttrack.evidence.inputs import UnitInputs
from fasttrack.evidence.plan import Plan, parse_plan
from fasttrack.evidence.predicates.common import ApartFile, BoundaryFile, Inputs
from fasttrack.evidence.resign import signed_again
from fasttrack.evidence.shape import judging_digest, runs_of
from fasttrack.evidence.shown import statement_of
from fasttrack.evidence.signing import signed_bundle
from fasttrack.evidence.statement import Statement, read_statement
from fasttrack.evidence.store import Stored
from fasttrack.vocabulary import Kind
from tests.evidence.collecting import MACHINE, RUN, report
from tests.evidence.keys import DAY, key, signer, trust
from tests.evidence.scratch import plan_of, planned, project, refusal
from tests.evidence.strategies import good

NEAR = (BoundaryFile(path="near.py", sha256="9" * 64),)
Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    root = project(tmp_path_factory.mktemp("plan"), "", **{"near.py": "", "deep.py": ""})
    found = plan_of(root, [planned(1), refusal(9)]).model_dump(mode="json")
    for unit in found["units"]:
        unit["boundary"] = [file.model_dump() for file in NEAR]
    return parse_plan(json.dumps(found).encode(), "a plan")


def derived_from(plan: Plan, **changes: Any) -> Derived:
    """What git would tell, were it the plan's, with other fields."""
    whole = Derived(
        plan.roots,
        plan.unbound,
        plan.beside,
        lambda unit: plan.unit(unit).patterns,
        lambda unit: plan.unit(unit).variants,
        inputs_in(plan),
    )
    return replace(whole, **changes)


def inputs_in(plan: Plan) -> Callable[[str], UnitInputs]:
    """The inputs that git would tell, were they the plan's."""

    def told(name: str) -> UnitInputs:
        unit = plan.unit(name)
        files, tests = (
            tuple(InputFile(f.path, f.mode, f.sha256, "") for f in listed)
            for listed in (unit.files, unit.tests)
        )
        boundary = tuple(InputFile(f.path, "100644", f.sha256, "") for f in unit.boundary)
        runs = runs_of([file.path for file in tests], unit.patterns)
        return UnitInputs(name, files, tests, boundary, plan.roots, runs)

    return told


def statement(plan: Plan, cell: int = 0, run: str = RUN.run) -> Statement:
    """What a run showed of a cell of the plan, on the plan's hardware."""
    machine = MACHINE.model_copy(update={"hardware": "here"})
    facts = RUN.model_copy(update={"run": run})
    return statement_of(
        plan, plan.cells[cell], Outcome(report(), "", ""), facts, machine, root=Path()
    )


class Departed(Departure):
    """A plan's commit that has one file otherwise than the target branch."""

    target = "f" * 40
    apart: tuple[ApartFile, ...] = (ApartFile(path="deep.py", sha256="8" * 64),)

    def __init__(self) -> None:
        """Asks git nothing."""

    def told(self, inputs: Inputs, bound: Collection[str], near: Near, where: str) -> Inputs:
        """The same of every statement."""
        found = {"boundary": tuple(near), "target": self.target, "apart": self.apart}
        return inputs.model_copy(update=found)


def signed(plan: Plan, *statements: Statement, told: Any = None) -> list[bytes]:
    entries = [Entry(f"file:{number}", one) for number, one in enumerate(statements, 1)]
    derived = derived_from(plan, **({"inputs_of": told} if told else {}))
    return signed_bundle(entries, plan, derived, Departed(), signer("lab"))


def changed(one: Statement, part: str, **update: Any) -> Statement:
    """The statement with other fields in one of its parts; of the whole where it is empty."""
    predicate = one.predicate
    if part:
        update = {part: getattr(predicate, part).model_copy(update=update)}
    return Statement(one.predicate_type, predicate.model_copy(update=update))


def test_every_statement_is_signed_with_what_it_had_otherwise_and_by_the_key(plan: Plan) -> None:
    collected = [statement(plan), statement(plan, 1)]
    envelopes = [read_envelope(line, "it") for line in signed(plan, *collected)]
    more = {"target": Departed.target, "apart": Departed.apart}
    two = [changed(one, "inputs", **more) for one in collected]
    assert [one.payload for one in envelopes] == [one.to_bytes() for one in two]
    keys = trust(key("lab", hardware=("here",)))
    stored = [Stored("f:1", e, s) for e, s in zip(envelopes, two, strict=True)]
    accepted = {one.accepted for one in accept(stored, keys, DAY)}
    assert accepted == {True, False}  # the refusal was not asked, and shows nothing
    assert two[1].problems()


def test_two_runs_of_one_cell_are_two_statements(plan: Plan) -> None:
    both = [statement(plan, run="1" * 32), statement(plan, run="2" * 32)]
    assert len(signed(plan, *both)) == 2


OTHER = "0" * 64
REFUSED: Mapping[str, tuple[Callable[[Statement], Statement], str]] = {
    "plan": (lambda s: changed(s, "run", plan="f" * 32), "a statement of plan f{32} at c{12}"),
    "commit": (lambda s: changed(s, "run", commit="f" * 40), "a statement of plan b{32} at f{12}"),
    "seeds": (lambda s: changed(s, "", seeds=(5, 8)), "other seeds"),
    "fewer seeds": (lambda s: changed(s, "", seeds=(5,)), "other seeds"),
    "files": (lambda s: changed(s, "inputs", digest=OTHER), "digests of other bytes"),
    "tests": (lambda s: changed(s, "inputs", tests=OTHER), "digests of other bytes"),
    "unit": (lambda s: changed(s, "inputs", unit="gate-files"), "the unit gate-files"),
    "boundary": (
        lambda s: changed(s, "inputs", boundary=()),
        "another boundary",
    ),
    "beside": (
        lambda s: changed(s, "inputs", boundary=(*NEAR, BoundaryFile(path="a", sha256=OTHER))),
        "the boundary file a; want a file of the plan's commit",
    ),
    "hardware": (lambda s: changed(s, "machine", hardware="h200"), "measured on h200"),
    "cell": (
        lambda s: changed(s, "cell", values={"unit": "smooth", "rows": 3, "hardware": "here"}),
        "the kernel-test cell .*3.*; want a cell of the plan",
    ),
    "kind": (
        lambda s: changed(s, "cell", kind=Kind.REFUSAL),
        "the refusal cell .*; want a cell of the plan",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_one_statement_with_another_of_these_keeps_all_from_being_signed(
    plan: Plan, what: str
) -> None:
    change, message = REFUSED[what]
    with pytest.raises(InputError, match=f"^file:2: saw {message}"):
        signed(plan, statement(plan, 0, "2" * 32), change(statement(plan)))


def test_what_a_run_used_beside_the_plans_boundary_may_be_signed(plan: Plan) -> None:
    deep = BoundaryFile(path="deep.py", sha256=OTHER)
    (line,) = signed(plan, changed(statement(plan), "inputs", boundary=(*NEAR, deep)))
    found = read_statement(read_envelope(line, "it").payload, "it").predicate.inputs
    assert (found.boundary, found.apart) == (NEAR, Departed.apart)


def test_a_statement_that_no_store_could_hold_is_not_signed(plan: Plan) -> None:
    class Far(Departed):
        apart = tuple(ApartFile(path="a" * 200 + str(n), sha256="8" * 64) for n in range(1000))

    entries = [Entry("file:1", statement(plan))]
    with pytest.raises(InputError, match=r"^file:1: saw a statement of 2.*with 1,000 files that"):
        signed_bundle(entries, plan, derived_from(plan), Far(), signer("lab"))


def test_a_refusal_may_be_asked_on_any_machine(plan: Plan) -> None:
    assert signed(plan, changed(statement(plan, 1), "machine", hardware="h200"))


def test_nothing_and_the_same_cell_twice_in_a_run_are_refused(plan: Plan) -> None:
    with pytest.raises(InputError, match="saw no statements"):
        signed(plan)
    with pytest.raises(InputError, match=r"saw 2 statements of .*; want one for each cell"):
        signed(plan, statement(plan), statement(plan))


@pytest.mark.parametrize("part", ["files", "tests", "boundary"])
def test_a_plan_that_says_other_bytes_than_git_is_refused(plan: Plan, part: str) -> None:
    def told(name: str) -> UnitInputs:
        found = inputs_in(plan)(name)
        more = (*getattr(found, part), InputFile("zzz", "100644", OTHER, ""))
        parts = {"files": found.files, "tests": found.tests, "boundary": found.boundary}
        return replace(found, **(parts | {part: more}))

    with pytest.raises(InputError, match="unit smooth of the plan: saw other digests"):
        signed(plan, statement(plan), told=told)


EDITED: Mapping[str, tuple[dict[str, Any], str]] = {
    "other patterns": (
        {"patterns_of": lambda _: ("tests/**", "more/**")},
        "unit gate-files of the plan: saw other test patterns",
    ),
    "another table": (
        {"variants_of": lambda _: "beacon/table.json"},
        "unit gate-files of the plan: saw another variant table",
    ),
    "other roots": ({"roots": ("beacon/", "tests/")}, "the plan: saw other roots"),
    "other files beside": ({"beside": ("beside.py",)}, "the plan: saw other files beside"),
    "more that is unbound": ({"unbound": ("manifests/",)}, "the plan: saw other roots, or other"),
}


@pytest.mark.parametrize("what", EDITED)
def test_a_plan_that_says_other_than_follows_from_its_commit_is_refused(
    plan: Plan, what: str
) -> None:
    told, message = EDITED[what]
    entries = [Entry("file:1", statement(plan))]
    with pytest.raises(InputError, match=f"^{message}"):
        signed_bundle(entries, plan, derived_from(plan, **told), Departed(), signer("lab"))


def test_a_cell_that_runs_fewer_tests_than_its_unit_has_is_refused(plan: Plan) -> None:
    whole = plan.model_dump(mode="json")
    for unit in whole["units"]:
        unit["tests"].append({"path": "tests/zzz.py", "mode": "100644", "sha256": OTHER})
        files = [InputFile(f["path"], f["mode"], f["sha256"], "") for f in unit["tests"]]
        runs = runs_of([file.path for file in files], unit["patterns"])
        unit["tests_digest"] = judging_digest(files, whole["roots"], runs)
    for cell in whole["cells"]:
        cell["tests"].append("tests/zzz.py")
    honest = parse_plan(json.dumps(whole).encode(), "a plan")
    assert signed(honest, statement(honest))
    whole["cells"][0]["tests"].pop()
    edited = parse_plan(json.dumps(whole).encode(), "a plan")
    with pytest.raises(InputError, match=r"^cell 0 of the plan: saw 1 test files, not the 2 of"):
        signed(edited, statement(edited))


def test_every_problem_of_a_bundle_is_told_at_once(plan: Plan) -> None:
    bad = [changed(statement(plan), "inputs", digest=OTHER), changed(statement(plan), "", seeds=())]
    with pytest.raises(InputError) as caught:
        signed(plan, *bad)
    assert [p.where for p in caught.value.problems] == [f"run {RUN.run}", "file:1", "file:2"]


def stored(*signers: str, rows: int = 4, run: str = "2" * 32) -> Stored:
    """A good statement, signed by these."""
    one = good(Kind.REFUSAL, run=run, values={"unit": "kda", "rows": rows})
    return Stored(f"f:{rows}", read_envelope(sign(one, *map(signer, signers)), "f"), one)


OLD, NEW = key("lab"), key("lab-2", pool="lab-pool")
CLOUD = key("cloud")


def again(*all_of: Stored, keys: Any = None, old: str = "lab") -> list[Stored]:
    lines = signed_again(all_of, keys or trust(OLD, NEW, CLOUD), old, signer("lab-2"), DAY)
    read = [read_envelope(line, "new") for line in lines]
    by_payload = {one.signed.payload: one.statement for one in all_of}
    return [Stored("new:1", one, by_payload[one.payload]) for one in read]


def test_what_counts_under_the_old_key_is_signed_by_the_new_one_and_nothing_else() -> None:
    kept, others = stored("lab", rows=1), stored("cloud", rows=2)
    (new,) = again(kept, others, stored("nobody", rows=3), stored("lab", "lab-2", rows=5))
    assert new.signed.payload == kept.signed.payload
    assert [one.key_id for one in new.signed.signatures] == ["lab-2"]
    revoked = key("lab", revoked=date(2026, 1, 2))
    assert accept([new], trust(revoked, NEW), DAY)[0].accepted
    assert not accept([kept], trust(revoked, NEW), DAY)[0].accepted


def test_signing_again_is_no_second_witness() -> None:
    two = trust(OLD, NEW, CLOUD, thresholds={Kind.REFUSAL: 2})
    with pytest.raises(
        InputError, match="1 statements signed by lab, none of which counts: 1 of 2"
    ):
        again(stored("lab"), keys=two)
    ours, theirs = stored("lab", run="3" * 32), stored("cloud")
    (new,) = again(ours, theirs, keys=two)
    assert new.signed.payload == ours.signed.payload
    assert not accept([new, ours], two, DAY)[0].accepted
    with pytest.raises(InputError, match="saw lab of pool lab-pool and lab-2 of pool elsewhere"):
        again(ours, keys=trust(OLD, key("lab-2", pool="elsewhere")))


@pytest.mark.parametrize("wrong", ["nobody", "lab-2"])
def test_the_key_that_is_replaced_is_another_of_the_policys(wrong: str) -> None:
    with pytest.raises(InputError, match=f"saw '{wrong}'; want one of cloud, lab"):
        again(stored("lab"), old=wrong)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"valid_from": date(2026, 11, 28)}, "key lab-2 is valid from 2026-11-28"),
        ({"kinds": (Kind.STRESS,)}, "key lab-2 may sign stress, not refusal"),
        ({"hardware": ("cpu",)}, "key lab-2 speaks for cpu"),
    ],
)
def test_signatures_that_would_not_count_are_not_made(
    limits: Mapping[str, Any], message: str
) -> None:
    new = key("lab-2", pool="lab-pool", **limits)
    with pytest.raises(InputError, match=message):
        again(stored("lab"), keys=trust(OLD, new))


def test_signing_again_twice_adds_nothing(tmp_path: Path) -> None:
    one = stored("lab")
    with pytest.raises(InputError, match="all signed by lab-2 already"):
        again(one, *again(one))


@pytest.mark.parametrize(
    ("all_of", "old", "saw"),
    [
        ([], OLD, "none of 0 statements signed by lab"),
        ([stored("cloud")], OLD, "none of 1 statements signed by lab"),
        ([stored("lab", "lab-2")], OLD, "1 statements that count under lab, all signed by lab-2"),
        (
            [stored("lab")],
            key("lab", revoked=date(2026, 1, 2)),
            "1 statements signed by lab, none of which counts: key lab is revoked",
        ),
        (
            [stored("lab"), stored("cloud", rows=2)],
            key("lab", kinds=(Kind.STRESS,)),
            "1 statements signed by lab, none of which counts: key lab may sign stress, not",
        ),
    ],
)
def test_nothing_to_sign_again_is_told_with_its_reason(
    all_of: list[Stored], old: Any, saw: str
) -> None:
    with pytest.raises(InputError, match=saw):
        again(*all_of, keys=trust(old, NEW, CLOUD))
