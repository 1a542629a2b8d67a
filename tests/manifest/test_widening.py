# SPDX-License-Identifier: Apache-2.0
"""Widening against lists of points, and field by field in both directions."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fasttrack.errors import FactUnavailable
from fasttrack.manifest import region as region_module
from fasttrack.manifest.load import load_manifest
from fasttrack.manifest.model import Manifest, Region
from fasttrack.manifest.widening import WideningKind, widenings

from .builders import UNIVERSE, admits, manifest, region, regions, valid
from .edits import cases, edited

CASES = cases("widening.yaml")
scopes = st.lists(regions(), min_size=1, max_size=3)


def kinds(base: Manifest | None, head: Manifest) -> list[str]:
    return [str(w.kind) for w in widenings(base, head)]


@pytest.mark.parametrize("case", CASES, ids=[case["why"] for case in CASES])
def test_an_edit_widens_exactly_as_its_case_says_and_so_does_its_undoing(
    case: dict[str, Any],
) -> None:
    head = load_manifest(edited(case["edit"]), "head.yaml")
    assert kinds(valid(), head) == case["widens"]
    assert kinds(head, valid()) == case["back"]


def test_every_kind_but_the_new_manifest_has_a_case() -> None:
    seen = {kind for case in CASES for kind in (*case["widens"], *case["back"])}
    assert seen == set(WideningKind) - {WideningKind.MANIFEST}


def tier_of(m: Manifest, index: int) -> int:
    """The highest tier at which a scope admits a point, or -1."""
    return max((r.tier.rank for r in m.scope if admits(r, UNIVERSE[index])), default=-1)


@given(scopes, scopes)
@settings(max_examples=50, deadline=None)
def test_scopes_widen_exactly_when_some_point_has_a_higher_tier_than_before(
    base: list[Region], head: list[Region]
) -> None:
    old, new = manifest(*base), manifest(*head)
    tiers = [(tier_of(old, i), tier_of(new, i)) for i in range(len(UNIVERSE))]
    found = {w.kind for w in widenings(old, new)}
    assert bool(found) == any(b < h for b, h in tiers)
    assert (WideningKind.POINT in found) == any(b < 0 <= h for b, h in tiers)
    if WideningKind.TIER in found:
        assert any(0 <= b < h for b, h in tiers)


@given(scopes)
@settings(max_examples=50, deadline=None)
@example([region()])
def test_nothing_is_wider_than_itself(scope: list[Region]) -> None:
    m = manifest(*scope)
    assert widenings(m, m) == ()
    assert widenings(m, manifest(*scope[::-1])) == ()


@given(scopes, st.data())
@settings(max_examples=50, deadline=None)
def test_a_region_less_never_widens(scope: list[Region], data: st.DataObject) -> None:
    kept = data.draw(st.lists(st.sampled_from(scope), min_size=1, unique_by=id))
    assert widenings(manifest(*scope), manifest(*kept)) == ()


def test_points_and_tiers_are_answered_by_evidence_and_all_else_by_a_person() -> None:
    by_evidence = {
        w.kind
        for base, head in ((valid(), valid()), (None, valid()))
        for w in widenings(base, head)
        if not w.needs_human
    }
    assert by_evidence == {WideningKind.POINT}
    raised = manifest(region(tier="served"))
    [tier] = widenings(manifest(region(tier="compiled")), raised)
    assert (tier.kind, tier.needs_human) == (WideningKind.TIER, False)


def test_a_new_manifest_is_new_in_everything_that_lets_something_through() -> None:
    assert kinds(None, valid()) == [
        "manifest",
        "root",
        "root",
        "wiring",
        "switch",
        "point",
        "point",
        "claim",
        "lease",
        "sponsor",
        "waiver",
    ]


def test_a_tier_is_only_as_high_as_the_regions_that_cover_the_whole_point_set() -> None:
    base = manifest(
        region(requests=(1, 2), tier="stress-tested"), region(requests=(3, 4), tier="compiled")
    )
    head = manifest(region(requests=(1, 4), tier="stress-tested"))
    [widening] = widenings(base, head)
    assert widening.kind is WideningKind.TIER
    assert "requests=3" in widening.saw


def test_what_can_not_be_compared_is_could_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(region_module.Budget.__init__, "__defaults__", (5,))
    with pytest.raises(FactUnavailable):
        widenings(valid(), valid())
