# SPDX-License-Identifier: Apache-2.0
"""What evidence says of one cell: every status has its cause and says it."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fasttrack.evidence.coverage import (
    Evidence,
)
from fasttrack.evidence.inputs import UnitInputs
from fasttrack.evidence.predicates.common import (
    ApartFile,
    TestResults,
)
from fasttrack.evidence.predicates.sync_audit_v1 import AuditedKernel, AuditWaiver
from fasttrack.evidence.status import Status
from fasttrack.evidence.terms import Terms
from fasttrack.evidence.trust import Signatures, judge
from fasttrack.manifest.cells import cell
from fasttrack.manifest.model import Manifest, Waiver
from fasttrack.vocabulary import Kind
from tests.evidence.covering import (
    CLOUD,
    ELSEWHERE,
    FORGED,
    KDA,
    LAB,
    LONG_AGO,
    MANIFEST_NOW,
    MERGED,
    POLICY_NOW,
    answer,
    inputs,
    policy,
    told,
)
from tests.evidence.keys import DAY, trust
from tests.evidence.plans import TABLE as VARIANT_TABLE
from tests.evidence.strategies import EXECUTION, digest


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


def test_the_page_explains_every_status() -> None:
    page = (Path(__file__).parents[2] / "docs/verdict.md").read_text("utf-8")
    table = page.partition("## Status of a cell")[2]
    assert sorted(
        re.findall(r"`([a-z-]+)`", "".join(re.findall(r"^\|[^|]*", table, re.M)))
    ) == sorted(status.value for status in Status)
