# SPDX-License-Identifier: Apache-2.0
"""What evidence says of one cell: every status, and the same answer from a second formulation."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fasttrack.evidence.coverage import (
    GRACE_DAYS,
    Evidence,
    covered_by,
)
from fasttrack.evidence.digest import InputFile
from fasttrack.evidence.inputs import UnitInputs
from fasttrack.evidence.predicates.common import (
    ApartFile,
    BoundaryFile,
    Inputs,
    Interval,
    TestResults,
)
from fasttrack.evidence.predicates.sync_audit_v1 import AuditedKernel, AuditWaiver
from fasttrack.evidence.statement import Statement
from fasttrack.evidence.status import Answer, Status
from fasttrack.evidence.surroundings import START_DAYS, Around, Nowhere, Then
from fasttrack.evidence.terms import Terms
from fasttrack.evidence.trust import Signatures, judge
from fasttrack.manifest.cells import Cell, cell
from fasttrack.manifest.load import load_manifest
from fasttrack.manifest.model import Manifest, Waiver
from fasttrack.manifest.points import witness_points
from fasttrack.policy.load import load_policy
from fasttrack.policy.model import Bandwidth, Policy
from fasttrack.vocabulary import Kind
from tests.engine import MANIFEST, POLICY
from tests.evidence.keys import DAY, key, trust
from tests.evidence.plans import TABLE as VARIANT_TABLE
from tests.evidence.plans import engine, region
from tests.evidence.strategies import EXECUTION, digest, good, spread

KDA = cell(Kind.KERNEL_TEST, "r", {"unit": "kda", "rows": 4, "hardware": "h200"})
BOUNDARY = (BoundaryFile(path="engine/ops.py", sha256=digest("9")),)
LAB = Signatures(("lab",), frozenset({"lab"}))
CLOUD = Signatures(("cloud",), frozenset({"cloud"}))
FORGED = Signatures(("lab",), frozenset())


def inputs(
    unit: str = "kda", files: str = "a", tests: str = "b", boundary: str = "9"
) -> UnitInputs:
    """A unit's inputs in the judged tree, by the letters of their digests."""
    outside = InputFile("engine/ops.py", "100644", digest(boundary), "imported")
    found = UnitInputs(unit, (), (), (outside,))
    found.__dict__.update(digest=digest(files), tests_digest=digest(tests))
    return found


def policy(**changes: Any) -> Policy:
    """The engine's policy, trusting `lab` and `cloud`, with other fields."""
    whole = yaml.safe_load(str(engine()[POLICY]))
    read = load_policy(yaml.safe_dump(whole).encode(), "policy")
    return read.model_copy(update={"trust": trust()} | changes)


def manifest(**changes: Any) -> Manifest:
    """The engine's manifest with one region at a tier, nothing to audit, and other fields."""
    files = engine(region(tier=changes.pop("tier", "kernel-tested")), manifest=changes)
    read = load_manifest(str(files[MANIFEST]).encode(), "manifest")
    unbuilt = {"archs": (), "variants": None}
    units = tuple(unit.model_copy(update=unbuilt) for unit in read.units)
    return read.model_copy(update={"units": units})


ELSEWHERE, MERGED, LONG_AGO = "e" * 40, "d" * 40, "a" * 40
"""A commit of nobody's, one that was merged, and one that the target branch left long ago."""


class HadBefore(Nowhere):
    """A target branch whose `engine/ops.py` was something else once."""

    def was_at(self, commit: str) -> bool:
        """At every commit but these, and not where a run was measured."""
        return commit not in {ELSEWHERE, MERGED, "c" * 40}

    def has_merged(self, commit: str) -> bool:
        """The one that was merged."""
        return commit == MERGED

    def days_behind(self, commit: str, moment: datetime) -> int:
        """More than a run may be, of one commit alone."""
        return START_DAYS + (commit == LONG_AGO)

    def strange(self, ran: Inputs, moved: Then, unit: UnitInputs) -> tuple[str, ...]:
        """All but that."""
        once = moved == {"engine/ops.py": digest("8")}
        return super().strange(ran, {} if once else moved, unit)


HAD_BEFORE = HadBefore()
POLICY_NOW = policy()
MANIFEST_NOW = manifest()


def told(kind: Kind = Kind.KERNEL_TEST, **changes: Any) -> Statement:
    """A statement with the boundary of `inputs`; `machine`, `ran`, ... name other fields."""
    machine, packages = changes.pop("machine", {}), changes.pop("packages", None)
    ran = {"boundary": BOUNDARY, "target": "b" * 40} | changes.pop("ran", {})
    made = good(kind, **changes)
    predicate = made.predicate
    update: dict[str, Any] = {
        "inputs": predicate.inputs.model_copy(update=ran),
        "machine": predicate.machine.model_copy(update=machine),
    }
    if packages is not None:
        update["toolchain"] = predicate.toolchain.model_copy(update={"packages": packages})
    return Statement(made.predicate_type, predicate.model_copy(update=update))


def answer(
    *signed: tuple[Statement, Signatures],
    about: Cell = KDA,
    now: UnitInputs | None = None,
    under: Policy = POLICY_NOW,
    of: Manifest = MANIFEST_NOW,
    day: date = DAY,
    around: Around = HAD_BEFORE,
) -> Answer:
    """What statements say of a cell."""
    evidence = Evidence(judge(signed, under.trust, day))
    return evidence.answer(about, Terms(under, of, day, around), lambda unit: now or inputs(unit))


@pytest.mark.parametrize(
    ("passed", "status"),
    [
        (("t/a.py::test_a[1]", "t/b.py::TestB::test_b"), Status.COVERED),
        (("t/a.py::test_a[1]", "t/b.pyx::test_b"), Status.SKIPPED),
        (("t/a.py::test_a[1]",), Status.SKIPPED),
        (("t/b.py::test_b",), Status.COVERED),
    ],
)
def test_every_file_that_runs_and_has_tests_must_have_one_that_passed(
    passed: tuple[str, ...], status: Status
) -> None:
    now = replace(inputs(), runs=("t/a.py", "t/b.py"), has_tests=lambda path: path == "t/b.py")
    now.__dict__.update(digest=inputs().digest, tests_digest=inputs().tests_digest)
    said = told(content={"results": TestResults(passed=passed)})
    found = answer((said, LAB), now=now)
    assert found.status is status
    assert ("no test of t/b.py" in found.detail) == (status is Status.SKIPPED)


TOOLS = {"exact": {"CuTe": "4.8.1"}, "ranges": {"torch": ">=2.11", "cuda": ">=13.0"}}
TABLE: Mapping[str, tuple[Status, str, dict[str, Any]]] = {
    "other files": (Status.STALE, "the files of kda", {"digest": digest("c")}),
    "other tests": (Status.STALE, "the tests of kda", {"tests": digest("c")}),
    "another unit": (Status.WRONG_UNIT, "the files of mla", {"unit": "mla"}),
    "failed": (
        Status.FAILED,
        "1 tests failed, t first",
        {"content": {"results": TestResults(passed=("s",), failed=("t",))}},
    ),
    "nothing seen to run": (
        Status.FAILED,
        "2 steps fell back",
        {"content": {"execution": EXECUTION.model_copy(update={"fallbacks": 2})}},
    ),
    "all skipped": (
        Status.SKIPPED,
        "all skipped",
        {"content": {"results": TestResults(skipped=("t",))}},
    ),
    "some skipped": (
        Status.SKIPPED,
        "1 tests did not run",
        {"content": {"results": TestResults(passed=("s",), skipped=("t",))}},
    ),
    "other hardware": (Status.WRONG_DEVICE, "measured on cpu, not on h200", {"hardware": "cpu"}),
    "other product": (
        Status.WRONG_DEVICE,
        "h200 is NVIDIA H200, and this ran on NVIDIA H100",
        {"machine": {"device": "NVIDIA H100"}},
    ),
    "other architecture": (
        Status.WRONG_DEVICE,
        "h200 is sm_90a, and this ran on sm_100a",
        {"machine": {"arch": "sm_100a"}},
    ),
    "a slice": (Status.WRONG_DEVICE, "a slice of NVIDIA H200", {"machine": {"mig": True}}),
    "few seeds": (Status.BELOW_FLOOR, "1 of 3 seeds", {"content": {"seeds": (7, 7, 7)}}),
    "old": (
        Status.TOO_OLD,
        "91 days ago",
        {"finished": datetime(2026, 8, 30, tzinfo=UTC)},
    ),
    "of no commit": (
        Status.STALE,
        "run 222222222222 of 2026-11-20 does not say what it had otherwise",
        {"ran": {"target": None}},
    ),
    "of a commit that was never the target": (
        Status.STALE,
        "run 222222222222 of 2026-11-20 started from eeeeeeeeeeee, which the target branch never",
        {"ran": {"target": ELSEWHERE}},
    ),
    "of a commit that was merged into the target": (
        Status.STALE,
        "dddddddddddd, which the target branch never was at itself: it was merged, perhaps with",
        {"ran": {"target": MERGED}},
    ),
    "of a commit that the target left long before": (
        Status.STALE,
        "aaaaaaaaaaaa, which the target branch had left 15 days before; measure what is nearer",
        {"ran": {"target": LONG_AGO}},
    ),
    "rigged": (
        Status.STALE,
        "rig.py, in no digest, was in run 222222222222 of 2026-11-20 what did not stand so",
        {"ran": {"apart": (ApartFile(path="rig.py", sha256=digest("9")),)}},
    ),
    "sound": (Status.COVERED, "shown by run 222222222222 of 2026-11-20", {}),
}


@pytest.mark.parametrize("name", TABLE)
def test_each_status_has_its_cause_and_says_it(name: str) -> None:
    status, said, changes = TABLE[name]
    found = answer((told(**changes), LAB))
    assert (found.status, found.covers) == (status, status is Status.COVERED)
    assert said in found.detail


def test_a_cell_of_which_no_statement_speaks_is_missing() -> None:
    other = told(values={"unit": "kda", "rows": 5, "hardware": "h200"})
    assert answer((other, LAB)).status is Status.MISSING
    assert answer().status is Status.MISSING


def test_inputs_are_not_asked_for_where_no_statement_speaks_of_the_cells_unit() -> None:
    def never(unit: str) -> UnitInputs:
        raise AssertionError(unit)

    terms = Terms(POLICY_NOW, MANIFEST_NOW, DAY)
    foreign = judge([(told(unit="mla"), LAB)], POLICY_NOW.trust, DAY)
    assert Evidence(foreign).answer(KDA, terms, never).status is Status.WRONG_UNIT
    assert Evidence().answer(KDA, terms, never).status is Status.MISSING


@pytest.mark.parametrize(
    ("packages", "cuda", "said"),
    [
        ({"cute": "4.8.1", "torch": "2.11.0+cu130"}, "13.0", ""),
        ({"cute": "4.8.0", "torch": "2.11.0"}, "13.0", "CuTe 4.8.0, where the policy wants 4.8.1"),
        ({"cute": "4.8.1", "torch": "2.9.1"}, "13.0", "torch 2.9.1, where the policy wants"),
        ({"cute": "4.8.1", "torch": "2.11.0rc1"}, "13.0", "torch 2.11.0rc1"),
        ({"cute": "4.8.1", "torch": "main"}, "13.0", "torch main"),
        ({"cute": "4.8.1", "torch": "2.11.0"}, "12.9", "cuda 12.9"),
        ({"cute": "4.8.1", "torch": "2.11.0"}, None, "does not tell its version of cuda"),
        ({"torch": "2.11.0"}, "13.0", "does not tell its version of CuTe"),
    ],
)
def test_versions_are_held_against_the_policys(
    packages: dict[str, str], cuda: str | None, said: str
) -> None:
    under = policy(toolchain=POLICY_NOW.toolchain.model_validate(TOOLS))
    found = answer((told(packages=packages, machine={"cuda": cuda}), LAB), under=under)
    assert found.status is (Status.WRONG_TOOLCHAIN if said else Status.COVERED)
    assert said in found.detail


def test_what_does_not_compile_for_a_gpu_need_not_tell_versions_but_those_it_tells_count() -> None:
    under = policy(toolchain=POLICY_NOW.toolchain.model_validate(TOOLS))
    about = cell(Kind.REFUSAL, "r", {"region": "r", "bound": "rows"})

    def asked(packages: dict[str, str]) -> Status:
        values = dict(about.values)
        made = told(Kind.REFUSAL, values=values, unit="gate-files", packages=packages)
        return answer((made, LAB), about=about, under=under).status

    assert asked({}) is Status.COVERED
    assert asked({"torch": "2.9.0"}) is Status.WRONG_TOOLCHAIN


def test_a_cell_is_as_good_as_its_best_statement() -> None:
    bad = told(run="3" * 32, content={"results": TestResults(failed=("t",))})
    old = told(run="4" * 32, digest=digest("c"))
    assert answer((bad, LAB), (old, LAB)).status is Status.STALE
    assert answer((bad, LAB), (old, LAB), (told(), LAB)).status is Status.COVERED


def test_two_pools_must_agree_where_the_policy_wants_two_and_both_be_in_order() -> None:
    two = policy(trust=trust(thresholds={Kind.KERNEL_TEST: 2}))
    ours, theirs = told(), told(run="3" * 32)
    weak = told(run="3" * 32, content={"seeds": (7,)})
    assert answer((ours, LAB), (theirs, CLOUD), under=two).status is Status.COVERED
    for other in ((theirs, LAB), (weak, CLOUD), (theirs, FORGED)):
        found = answer((ours, LAB), other, under=two)
        assert (found.status, found.covers) == (Status.UNTRUSTED, False)
        assert "1 of 2 pools" in found.detail
    both = Signatures(("lab", "cloud"), frozenset({"lab", "cloud"}))
    found = answer((ours, both), (weak, CLOUD), under=two)
    assert (found.status, found.covers) == (Status.UNTRUSTED, False)
    assert found.detail == "1 of 2 pools say so of a run of their own: cloud-pool, lab-pool"


def test_a_waived_kernel_is_shown_until_its_waiver_ends() -> None:
    waiver = AuditWaiver(
        skeleton=digest("e"), reason="looked at", owner="owner", expires=DAY - timedelta(days=1)
    )
    audited = AuditedKernel(name="k", verdict="unproven", skeleton=digest("e"), waiver=waiver)
    about = cell(Kind.SYNC_AUDIT, "r", {"unit": "kda", "arch": "sm_90a", "variant": "v"})
    made = told(Kind.SYNC_AUDIT, values=dict(about.values), content={"kernels": (audited,)})

    def under(expires: date, **changes: str) -> Manifest:
        fields = {"rule": "sync-audit", "path": VARIANT_TABLE, "fingerprint": digest("e")} | changes
        waived = Waiver(reason="looked at", owner="owner", expires=expires, **fields)
        return MANIFEST_NOW.model_copy(update={"waivers": (waived,)})

    ended = waiver.expires - timedelta(days=1)
    for of, day, said in (
        (under(DAY), DAY, f"a waiver ended on {waiver.expires}"),
        (under(DAY), waiver.expires, ""),
        (under(waiver.expires), waiver.expires, ""),
        (under(ended), waiver.expires, f"a waiver ended on {ended}"),
        (under(DAY, fingerprint=digest("d")), ended, "k: the manifest does not waive its skeleton"),
        (under(DAY, rule="FT103"), ended, "k: the manifest does not waive its skeleton"),
        (MANIFEST_NOW, ended, "k: the manifest does not waive its skeleton"),
    ):
        found = answer((made, LAB), about=about, of=of, day=day)
        assert found.covers == (not said), said
        assert said in found.detail


STRESS = cell(
    Kind.STRESS, "r", {"unit": "kda", "hardware": "h200", "ranks": "real", "tensor_parallel": 2}
)
EVAL = cell(Kind.MODEL_EVAL, "h100-tp1", {"hardware": "h200", "tensor_parallel": 1})
WEIGHTS = {"weights": digest("0")}
UNSURE = Interval(low=-0.01, high=0.01, confidence=0.9)


def test_stress_needs_its_profile_iterations_and_a_device_for_each_real_rank() -> None:
    def asked(count: int = 2, **content: Any) -> str:
        content = {"seeds": (1, 2, 3), **content}
        values = dict(STRESS.values)
        made = told(Kind.STRESS, values=values, content=content, machine={"count": count})
        found = answer((made, LAB), about=STRESS)
        return "" if found.covers else f"{found.status}: {found.detail}"

    (setting,) = good(Kind.STRESS).predicate.settings  # type: ignore[union-attr]
    short = setting.model_copy(update={"iterations": 199})
    assert asked() == ""
    assert asked(1) == "wrong-device: measured on 1 devices, and real ranks need 2"
    assert asked(profile="smoke") == "below-floor: profile smoke, below evidence"
    assert asked(settings=(short,)) == "below-floor: 199 of 200 iterations of rank-skew"


@pytest.mark.parametrize(
    ("ratio", "count", "pairs", "said"),
    [
        (2.0, 1, 10, ""),
        (1.0, 1, 10, "step: a ratio of 1"),
        (2.0, 2, 10, "measured on 2 devices, not on 1"),
        (2.0, 1, 9, "9 pairs of 10 runs of the path and 10 of the baseline"),
    ],
)
def test_a_measurement_must_bear_its_claim_out_on_as_many_devices_in_one_interleaved_run(
    ratio: float, count: int, pairs: int, said: str
) -> None:
    under = policy(
        hardware=POLICY_NOW.hardware
        | {
            "h200": POLICY_NOW.hardware["h200"].model_copy(
                update={"bandwidth_tb_s": Bandwidth(peak=4.8, sustained=4.2)}
            )
        }
    )
    (about,) = witness_points(MANIFEST_NOW, Kind.PERFORMANCE, under.hardware, {})
    content = {
        "ours": spread(100.0 / ratio),
        "ratio": spread(ratio),
        "bytes_moved": 1e6,
        "pairs": pairs,
    }
    values = dict(about.values)
    made = told(
        Kind.PERFORMANCE, values=values, unit="path", content=content, machine={"count": count}
    )
    found = answer((made, LAB), about=about, under=under)
    assert found.covers == (not said)
    assert said in found.detail


@pytest.mark.parametrize(
    ("content", "tier", "said"),
    [
        ({}, "model-evaluated", ""),
        ({"samples": 499}, "model-evaluated", "499 of 500 samples"),
        ({"model": "example/mini"}, "model-evaluated", "speaks of the model example/mini"),
        ({"weights": digest("1")}, "model-evaluated", "other weights"),
        ({"baseline": "eager"}, "model-evaluated", "compares with eager, not with auto"),
        ({"drop": UNSURE}, "model-evaluated", "an interval of 90% confidence"),
        ({}, "served", "a call of the library"),
        ({"endpoint": "vllm"}, "served", ""),
    ],
)
def test_an_evaluation_is_of_this_model_against_the_fallback_and_large_enough(
    content: dict[str, Any], tier: str, said: str
) -> None:
    whole = {"model": "example/foo", **WEIGHTS, **content}
    made = told(Kind.MODEL_EVAL, values=dict(EVAL.values), unit="path", content=whole)
    found = answer((made, LAB), about=EVAL, of=manifest(tier=tier))
    assert found.status is (Status.BELOW_FLOOR if said else Status.COVERED)
    assert said in found.detail


def test_every_task_that_the_manifest_names_is_needed() -> None:
    tasks = [{"task": t, "samples_min": 500, "drop_max": 0.01} for t in ("gsm8k", "mmlu")]
    of = manifest(evidence={"evals": tasks})

    def asked(*names: str) -> Status:
        made = [
            told(
                Kind.MODEL_EVAL,
                values=dict(EVAL.values),
                unit="path",
                run=f"{place}" * 32,
                content={"model": "example/foo", **WEIGHTS, "task": name},
            )
            for place, name in enumerate(names)
        ]
        return answer(*((one, LAB) for one in made), about=EVAL, of=of).status

    assert asked("gsm8k", "mmlu") is Status.COVERED
    assert asked("gsm8k") is Status.MISSING
    assert asked("other") is Status.MISSING


# The second formulation: a decision table over what is drawn, in the order of severity.
KEYS = ("good", "revoked", "expired", "forged", "unknown", "none-in-range")
AGES = (0, GRACE_DAYS, GRACE_DAYS + 1, 90, 91)
DRAWN = st.fixed_dictionaries(
    {
        "unit": st.sampled_from(["kda", "kda", "mla"]),
        "files": st.sampled_from(["a", "a", "c"]),
        "tests": st.sampled_from(["b", "b", "c"]),
        "boundary": st.sampled_from(["9", "9", "8", "7"]),
        "key": st.sampled_from((*KEYS, *("good",) * 5)),
        "outcome": st.sampled_from(["passed", "passed", "failed", "skipped"]),
        "device": st.sampled_from(["NVIDIA H200", "NVIDIA H200", "NVIDIA H100"]),
        "torch": st.sampled_from(["2.11.0", "2.11.0", "2.10.0"]),
        "seeds": st.sampled_from([3, 3, 5, 2]),
        "age": st.sampled_from((*AGES, -1)),
    }
)
VALID = {"valid_from": date(2020, 1, 1), "valid_until": date(2030, 1, 1)}
KEYRING = trust(
    key("good", **VALID),
    key("revoked", **VALID, revoked=DAY),
    key("expired", valid_from=date(2020, 1, 1), valid_until=date(2020, 2, 1)),
    key("forged", **VALID),
    key("none-in-range", **(VALID | {"hardware": ("cpu",)})),
)
ORDER = [
    *("covered", "boundary-changed", "unaudited", "other-code", "stale", "too-old", "failed"),
    *("skipped", "wrong-device", "wrong-toolchain", "untrusted", "below-floor", "wrong-unit"),
    "missing",
]


def expected(drawn: Mapping[str, Any], boundary: str) -> tuple[bool, str]:
    """Whether a statement covers, and its status: the first row of the table that applies."""
    grace = boundary == "grace" and drawn["age"] <= 14
    rows: list[tuple[bool, str]] = [
        (drawn["unit"] != "kda", "wrong-unit"),
        (drawn["files"] + drawn["tests"] != "ab", "stale"),
        (drawn["key"] != "good", "untrusted"),
        (drawn["age"] < 0, "untrusted"),
        (drawn["outcome"] != "passed", drawn["outcome"]),
        (drawn["device"] != "NVIDIA H200", "wrong-device"),
        (drawn["torch"] != "2.11.0", "wrong-toolchain"),
        (drawn["seeds"] < 3, "below-floor"),
        (drawn["age"] > 90, "too-old"),
        (drawn["boundary"] == "7" and grace, "stale"),
        (drawn["boundary"] != "9", "boundary-changed"),
    ]
    status = next((word for applies, word in rows if applies), "covered")
    return status == "covered" or (status == "boundary-changed" and grace), status


SOUND = {
    "unit": "kda",
    "files": "a",
    "tests": "b",
    "boundary": "9",
    "key": "good",
    "outcome": "passed",
    "device": "NVIDIA H200",
    "torch": "2.11.0",
    "seeds": 3,
    "age": 0,
}


def with_boundaries(test: Callable[..., None]) -> Callable[..., None]:
    """Whatever only the last rows of the table decide, which few draws reach."""
    for boundary, age, rule in product("987", (GRACE_DAYS, GRACE_DAYS + 1), ("grace", "stale")):
        test = example([{**SOUND, "boundary": boundary, "age": age}], rule)(test)
    return test


@settings(max_examples=150, deadline=None)
@given(st.lists(DRAWN, max_size=4), st.sampled_from(["grace", "stale"]))
@with_boundaries
def test_the_answer_is_that_of_a_decision_table(drawn: list[dict[str, Any]], boundary: str) -> None:
    under = policy(
        trust=KEYRING.model_copy(update={"boundary": boundary}),
        toolchain=POLICY_NOW.toolchain.model_validate({"ranges": {"torch": ">=2.11"}}),
    )
    signed = []
    for place, one in enumerate(drawn):
        results = TestResults(**{one["outcome"]: ("t",)})
        made = told(
            unit=one["unit"],
            digest=digest(one["files"]),
            tests=digest(one["tests"]),
            run=f"{place}" * 32,
            finished=datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC)
            - timedelta(days=one["age"]),
            machine={"device": one["device"]},
            packages={"torch": one["torch"]},
            content={"seeds": tuple(range(one["seeds"])), "results": results},
        )
        facts = made.predicate.inputs
        moved = tuple(f.model_copy(update={"sha256": digest(one["boundary"])}) for f in BOUNDARY)
        predicate = made.predicate.model_copy(
            update={"inputs": facts.model_copy(update={"boundary": moved})}
        )
        who = one["key"]
        valid = frozenset({who} - {"forged", "unknown"})
        signed.append((Statement(made.predicate_type, predicate), Signatures((who,), valid)))
    found = answer(*signed, under=under)

    best = min(
        (expected(one, boundary) for one in drawn),
        key=lambda e: (not e[0], ORDER.index(e[1])),
        default=(False, "missing"),
    )
    assert (found.covers, found.status.value) == best
    assert found.detail
    # What a plan leaves out is what is covered here, and nothing else.
    evidence = Evidence(judge(signed, under.trust, DAY))
    left_out = covered_by(evidence, Terms(under, MANIFEST_NOW, DAY), inputs)(KDA, inputs())
    assert left_out == (best[1] == "covered")


def test_the_page_explains_every_status() -> None:
    page = (Path(__file__).parents[2] / "docs/verdict.md").read_text("utf-8")
    table = page.partition("## Status of a cell")[2]
    assert sorted(
        re.findall(r"`([a-z-]+)`", "".join(re.findall(r"^\|[^|]*", table, re.M)))
    ) == sorted(status.value for status in Status)
