# SPDX-License-Identifier: Apache-2.0
"""Whether what ran is what was audited: all combinations, against a second formulation."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import product
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fasttrack.errors import FactUnavailable
from fasttrack.evidence.coverage import Evidence, covered_by
from fasttrack.evidence.inputs import UnitInputs
from fasttrack.evidence.machine_code import audit_cell, audits_of
from fasttrack.evidence.predicates.common import Execution, KernelLaunch
from fasttrack.evidence.predicates.sync_audit_v1 import AuditedKernel
from fasttrack.evidence.statement import Statement
from fasttrack.evidence.status import Answer
from fasttrack.evidence.terms import Terms
from fasttrack.evidence.trust import Signatures, judge
from fasttrack.manifest.cells import Cell, cell
from fasttrack.manifest.model import Manifest
from fasttrack.manifest.points import witness_points
from fasttrack.policy.model import Bandwidth
from fasttrack.vocabulary import Kind
from tests.evidence.covering import (
    CLOUD,
    HAD_BEFORE,
    LAB,
    MANIFEST_NOW,
    POLICY_NOW,
    inputs,
    manifest,
    policy,
    told,
)
from tests.evidence.keys import DAY
from tests.evidence.strategies import digest, good, spread

HERE, ELSEWHERE = "sm_90a", "sm_100a"
BUILT = {"kda": "engine/foo/table.json", "mla": None}
"""Units with machine code, to their variant tables."""
UNITS: list[dict[str, Any]] = [
    {"id": "kda", "archs": (HERE, ELSEWHERE), "variants": BUILT["kda"]},
    {"id": "mla", "archs": (HERE,), "variants": None},
    {"id": "router", "archs": (ELSEWHERE,), "variants": None},
]
FAST = POLICY_NOW.hardware["h200"].model_copy(
    update={"bandwidth_tb_s": Bandwidth(peak=4.8, sustained=4.2)}
)
UNDER = policy(hardware=POLICY_NOW.hardware | {"h200": FAST})


def built(tier: str) -> Manifest:
    """The engine's manifest with the units above, and one region at a tier."""
    whole = manifest(tier=tier)
    units = tuple(whole.units[0].model_copy(update=changes) for changes in UNITS)
    return whole.model_copy(update={"units": units})


OWING, FREE = built("served"), built("declared")
"""Manifests of which one owes audits."""
(CLAIM,) = witness_points(MANIFEST_NOW, Kind.PERFORMANCE, UNDER.hardware, {})


class Launch(NamedTuple):
    """What a run says of one launch."""

    unit: str | None = None
    variant: str | None = None
    cubin: str | None = None


class Audit(NamedTuple):
    """What an audit says."""

    unit: str = "kda"
    arch: str = HERE
    variant: str = "a"
    cubin: str = "1"
    verdict: str = "proved"


def ran(kind: Kind, unit: str, variant: str, *launches: Launch) -> tuple[Statement, Cell]:
    """A run of a cell that is covered otherwise, and the cell."""
    content: dict[str, Any] = {"execution": Execution(launches=_written(launches), fallbacks=0)}
    if kind is Kind.PERFORMANCE:
        about, unit = CLAIM, "path"
        content |= {"ours": spread(50.0), "ratio": spread(2.0), "bytes_moved": 1e6, "pairs": 10}
    else:
        content["seeds"] = (1, 2, 3)
        values: dict[str, str | int] = {"unit": unit, "rows": 4, "hardware": "h200"}
        about = cell(kind, "r", values | ({"variant": variant} if kind is Kind.STRESS else {}))
    return told(kind, values=dict(about.values), unit=unit, content=content), about


def _written(launches: Sequence[Launch]) -> tuple[KernelLaunch, ...]:
    return tuple(
        KernelLaunch(
            name=f"k{place}",
            launches=1,
            unit=one.unit,
            variant=one.variant,
            cubin=digest(one.cubin) if one.cubin else None,
        )
        for place, one in enumerate(launches)
    )


def audited(one: Audit, run: int = 0, **changes: Any) -> Statement:
    """The statement of an audit."""
    kernel = AuditedKernel(name="k", verdict=one.verdict, skeleton=digest("e"))  # type: ignore[arg-type]
    return told(
        Kind.SYNC_AUDIT,
        values=dict(audit_cell(one.unit, one.arch, one.variant).values),
        unit=one.unit,
        run=f"{run:032x}",
        content={"cubin": digest(one.cubin), "kernels": (kernel,)},
        **changes,
    )


def answered(
    run: tuple[Statement, Cell],
    audits: Sequence[Statement],
    of: Manifest = OWING,
    signed_by: Sequence[Signatures] = (),
    under: Any = UNDER,
) -> Answer:
    """What there is for the cell of a run, beside some audits."""
    statement, about = run
    signers = [LAB, *(signed_by or [LAB] * len(audits))]
    judged = judge([*zip([statement, *audits], signers, strict=True)], under.trust, DAY)
    return Evidence(judged).answer(about, Terms(under, of, DAY, HAD_BEFORE), inputs)


def proved_here(audits: list[Audit]) -> set[tuple[str, str, str]]:
    """Unit, variant and digest of what is known to be right on this architecture."""
    return {(a.unit, a.variant, a.cubin) for a in audits if (a.arch, a.verdict) == (HERE, "proved")}


def expected(kind: Kind, own: str, wanted: str, launches: list[Launch], audits: list[Audit]) -> str:
    """The status where audits are owed, by a table of what each launch is."""
    shown = proved_here(audits)
    if "gone" in {one.unit for one in launches}:
        return "other-code"
    faults, seen = [], set()
    for unit, variant, cubin in launches:
        whose = unit or own
        which = variant or ("all" if whose == "mla" else None)
        whole = (whose, which, cubin)
        kinds = {
            "covered": whole in shown or (whose not in BUILT and not cubin),
            "other-code": not (whose in BUILT and cubin and which)
            or any(whole[:2] == one[:2] for one in shown),
            "unaudited": True,
        }
        faults.append(next(name for name, applies in kinds.items() if applies))
        seen |= {whole[:2]} if whose in BUILT else set()
    if {*faults} - {"covered"}:
        return min({*faults} - {"covered"})
    if kind is Kind.PERFORMANCE:
        return "covered" if seen else "other-code"
    named = {wanted} if kind is Kind.STRESS and wanted != "all" else {which for _, which in seen}
    return (
        "covered" if own not in BUILT or {(own, which) for which in named} & seen else "other-code"
    )


def compared(own: str, launches: list[Launch], audits: list[Audit]) -> str:
    """The status where audits are not owed: only what is told and audited can be otherwise."""
    shown = proved_here(audits)
    if "gone" in {one.unit for one in launches}:
        return "other-code"
    for unit, variant, cubin in launches:
        whose = unit or own
        place = (whose, variant or ("all" if whose == "mla" else None))
        known = {one[2] for one in shown if one[:2] == place}
        if whose in BUILT and cubin and known and cubin not in known:
            return "other-code"
    return "covered"


LAUNCHES = st.builds(
    Launch,
    st.sampled_from([None, None, "kda", "mla", "router", "gone"]),
    st.sampled_from([None, "a", "a", "b"]),
    st.sampled_from([None, "1", "1", "2"]),
)
AUDITS = st.builds(
    Audit,
    st.sampled_from(["kda", "mla"]),
    st.sampled_from([HERE, HERE, HERE, ELSEWHERE]),
    st.sampled_from(["a", "b", "all"]),
    st.sampled_from(["1", "1", "2"]),
    st.sampled_from(["proved", "proved", "violated", "unproven"]),
)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([Kind.KERNEL_TEST, Kind.STRESS, Kind.PERFORMANCE]),
    st.sampled_from(["kda", "mla", "router"]),
    st.sampled_from(["a", "b", "all"]),
    st.lists(LAUNCHES, min_size=1, max_size=3),
    st.lists(AUDITS, max_size=4),
)
@example(Kind.PERFORMANCE, "kda", "all", [Launch("router")], [])
@example(Kind.PERFORMANCE, "kda", "all", [Launch("kda", "a", "1")], [Audit()])
@example(Kind.KERNEL_TEST, "kda", "all", [Launch("router")], [])
@example(Kind.STRESS, "mla", "all", [Launch("kda", "a", "1")], [Audit()])
@example(Kind.STRESS, "kda", "b", [Launch(None, "a", "1")], [Audit()])
@example(Kind.STRESS, "kda", "a", [Launch(None, "a", "1")], [Audit()])
@example(Kind.KERNEL_TEST, "router", "all", [Launch("mla", None, "1")], [Audit("mla", HERE, "all")])
def test_what_ran_is_held_against_the_audits_as_a_table_says(
    kind: Kind, unit: str, variant: str, launches: list[Launch], audits: list[Audit]
) -> None:
    run = ran(kind, unit, variant, *launches)
    own = "path" if kind is Kind.PERFORMANCE else unit
    statements = [audited(one, place) for place, one in enumerate(audits, start=1)]
    found = answered(run, statements)
    assert found.status == expected(kind, own, variant, launches, audits), found.detail
    assert found.covers == (found.status == "covered")
    assert bool(found.first) == (found.status == "unaudited")
    assert answered(run, statements, FREE).status == compared(own, launches, audits)


@pytest.mark.parametrize(
    ("differs", "status"),
    [
        ({}, "covered"),
        ({"unit": "mla"}, "unaudited"),
        ({"arch": ELSEWHERE}, "unaudited"),
        ({"variant": "b"}, "unaudited"),
        ({"cubin": "2"}, "other-code"),
        ({"verdict": "violated"}, "unaudited"),
        ({"verdict": "unproven"}, "unaudited"),
    ],
)
@pytest.mark.parametrize("kind", [Kind.KERNEL_TEST, Kind.STRESS])
def test_an_audit_counts_for_its_own_unit_arch_variant_and_digest_alone(
    kind: Kind, differs: dict[str, str], status: str
) -> None:
    run = ran(kind, "kda", "a", Launch(None, "a", "1"))
    found = answered(run, [audited(Audit()._replace(**differs))])
    assert found.status == status
    if status == "other-code":
        assert found.detail == (
            f"variant a of kda for sm_90a ran machine code {digest('1')}, "
            f"and {digest('2')} was audited"
        )
    if status == "unaudited":
        assert found.first == (audit_cell("kda", HERE, "a"),)
        assert digest("1") in found.detail


@pytest.mark.parametrize("of", [OWING, FREE], ids=["owing", "free"])
def test_a_launch_of_a_unit_that_the_manifest_lacks_is_refused_by_name(of: Manifest) -> None:
    run = ran(Kind.KERNEL_TEST, "kda", "a", Launch("gone"), Launch(None, "a", "1"))
    found = answered(run, [audited(Audit())], of)
    assert (found.status, found.covers) == ("other-code", False)
    assert found.detail == "the launch of k0 names gone, no unit of the manifest"


def test_other_evidence_launches_what_it_likes() -> None:
    values: dict[str, str | int] = {"hardware": "h200", "tensor_parallel": 1}
    about = cell(Kind.MODEL_EVAL, "h100-tp1", values)
    content = {"model": "example/foo", "weights": digest("0"), "endpoint": "vllm"}
    execution = Execution(launches=_written([Launch("kda", "a", "1")]), fallbacks=0)
    made = told(
        Kind.MODEL_EVAL,
        values=values,
        unit="path",
        content=content | {"execution": execution},
    )
    assert answered((made, about), []).covers
    assert audits_of([made, good(Kind.REFUSAL), good(Kind.KERNEL_TEST)]) == frozenset()


@pytest.mark.parametrize(
    "changes",
    [
        {"digest": digest("c")},
        {"tests": digest("c")},
        {"finished": None},
        {"ran": {"undeclared": ("engine/x.py",)}},
        {"machine": {"arch": "sm_120a"}},
    ],
)
def test_an_audit_that_does_not_cover_audits_nothing(changes: dict[str, Any]) -> None:
    if "finished" in changes:
        changes = {"finished": good(Kind.REFUSAL).predicate.run.finished - timedelta(days=200)}
    run = ran(Kind.KERNEL_TEST, "kda", "a", Launch(None, "a", "1"))
    assert answered(run, [audited(Audit(), **changes)]).status == "unaudited"


def test_as_many_pools_must_agree_on_one_digest_as_the_policy_wants() -> None:
    trust = UNDER.trust.model_copy(update={"thresholds": {Kind.SYNC_AUDIT: 2}})
    two = UNDER.model_copy(update={"trust": trust})
    run = ran(Kind.KERNEL_TEST, "kda", "a", Launch(None, "a", "1"))
    for second, status in (("1", "covered"), ("2", "unaudited")):
        pair = [audited(Audit(), 1), audited(Audit(cubin=second), 2)]
        assert answered(run, pair, signed_by=(LAB, CLOUD), under=two).status == status


def test_what_also_lacks_a_pool_waits_for_more_than_an_audit() -> None:
    trust = UNDER.trust.model_copy(update={"thresholds": {Kind.KERNEL_TEST: 2}})
    two = UNDER.model_copy(update={"trust": trust})
    run = ran(Kind.KERNEL_TEST, "kda", "a", Launch(None, "a", "1"))
    assert answered(run, [], under=two).status == "untrusted"
    assert answered(run, [audited(Audit(), 1)], under=two).status == "untrusted"
    assert answered(run, [audited(Audit(cubin="2"), 1)], under=two).status == "other-code"


def test_a_plan_leaves_out_what_waits_for_an_audit_and_not_what_ran_other_code() -> None:
    run, about = ran(Kind.KERNEL_TEST, "router", "a", Launch("kda", "a", "1"))

    def planned(*audits: Audit) -> bool:
        told = [run, *(audited(one, place) for place, one in enumerate(audits, start=1))]
        judged = judge([(one, LAB) for one in told], UNDER.trust, DAY)
        terms = Terms(UNDER, OWING, DAY, HAD_BEFORE)
        return not covered_by(Evidence(judged), terms, inputs)(about, inputs("router"))

    assert [planned(), planned(Audit()), planned(Audit(cubin="2"))] == [False, False, True]


def test_inputs_that_can_not_be_told_are_no_pass() -> None:
    statement, about = ran(Kind.KERNEL_TEST, "router", "a", Launch("kda", "a", "1"))
    judged = judge([(statement, LAB), (audited(Audit(), 1), LAB)], UNDER.trust, DAY)

    def inputs_of(unit: str) -> UnitInputs:
        if unit == "kda":
            raise FactUnavailable("a link")
        return inputs(unit)

    with pytest.raises(FactUnavailable):
        Evidence(judged).answer(about, Terms(UNDER, OWING, DAY, HAD_BEFORE), inputs_of)


def test_audits_are_looked_at_once_for_all_statements_that_launched_the_code() -> None:
    statement, about = ran(Kind.KERNEL_TEST, "router", "a", Launch("kda", "a", "1"))
    judged = judge([(statement, LAB), (audited(Audit(), 1), LAB)], UNDER.trust, DAY)
    asked: list[str] = []

    def inputs_of(unit: str) -> UnitInputs:
        asked.append(unit)
        return inputs(unit)

    evidence, terms = Evidence(judged), Terms(UNDER, OWING, DAY, HAD_BEFORE)
    for _ in range(3):
        assert evidence.answer(about, terms, inputs_of).covers
    assert asked.count("kda") == 1
    evidence.answer(about, Terms(UNDER, OWING, DAY + timedelta(days=1), HAD_BEFORE), inputs_of)
    assert asked.count("kda") == 2


def test_what_is_asked_before_anything_is_verified_holds_every_audit_that_decides() -> None:
    for unit, variant in product([None, "mla"], [None, "a"]):
        run, _ = ran(Kind.KERNEL_TEST, "kda", "a", Launch(unit, variant, "1"))
        assert audits_of([run]) == {audit_cell(unit or "kda", HERE, variant or "all").id}
    assert audits_of([ran(Kind.STRESS, "kda", "a", Launch(None, "a"))[0]]) == frozenset()
