# SPDX-License-Identifier: Apache-2.0
"""Approved skeletons and waivers: what they let pass, and for how long."""

from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.audit.approvals import Approvals, Waiver, load_approvals
from fasttrack.audit.finding import Audited, Verdict
from fasttrack.audit.judge import audit
from fasttrack.errors import InputError
from tests.audit.example import RIGHT, contract, kernel

DAY = date(2027, 3, 1)
ONE, OTHER = "1" * 64, "2" * 64
TEXT = f"""
approvals: 1
skeletons:
  - {{kernel: scale, arch: sm_90a, skeleton: "{ONE}"}}
waivers:
  - kernel: scale
    arch: sm_103a
    skeleton: "{OTHER}"
    reason: The table is built on the host and never written again.
    owner: "@someone"
    expires: 2027-03-01
"""


def _audited(**given: object) -> Audited:
    plain = Audited(
        kernel="scale", arch="sm_103a", verdict=Verdict.UNPROVEN, findings=(), waits=(),
        triggers=(), fences=(), skeleton=OTHER, cubin="", instructions=0,
    )  # fmt: skip
    return replace(plain, **given)  # type: ignore[arg-type]


def test_approvals_are_of_one_kernel_on_one_architecture() -> None:
    said = load_approvals(TEXT, "approvals.yaml")
    assert said.skeleton("scale", "sm_90a") == ONE
    assert said.skeleton("scale", "sm_103a") is None
    assert said.skeleton("scale2", "sm_90a") is None


def test_a_waiver_holds_to_the_end_of_its_last_day() -> None:
    said = load_approvals(TEXT, "approvals.yaml")
    assert said.waiver(_audited(), DAY) == said.waivers[0]
    assert said.waiver(_audited(), DAY + timedelta(days=1)) is None
    assert said.no_waiver(_audited(), DAY) == ""
    assert said.no_waiver(_audited(), DAY + timedelta(days=1)) == "it expired after 2027-03-01"


def test_a_waiver_does_not_hold_before_its_first_day() -> None:
    text = TEXT.replace("    expires:", "    since: 2027-02-01\n    expires:")
    said, first = load_approvals(text, "approvals.yaml"), date(2027, 2, 1)
    assert said.waiver(_audited(), first) == said.waivers[0]
    assert said.waiver(_audited(), first - timedelta(days=1)) is None
    assert said.no_waiver(_audited(), first - timedelta(days=1)) == "it begins on 2027-02-01"


def test_a_waiver_that_ends_before_it_begins_is_bad_input() -> None:
    text = TEXT.replace("    expires:", "    since: 2027-03-02\n    expires:")
    with pytest.raises(InputError, match="waivers: saw scale from 2027-03-02 to 2027-03-01"):
        load_approvals(text, "approvals.yaml")


WRONG = {
    "a day too late": ({}, 1, "it expired after 2027-03-01"),
    "another skeleton": ({"skeleton": ONE}, 0, "it was given for another skeleton, 222222222222"),
    "another kernel": ({"kernel": "scale2"}, 0, ""),
    "another architecture": ({"arch": "sm_100a"}, 0, ""),
    "violated": ({"verdict": Verdict.VIOLATED}, 0, "nothing waives a kernel that is violated"),
    "proved": ({"verdict": Verdict.PROVED}, 0, ""),
}


@pytest.mark.parametrize(("given", "days", "why"), WRONG.values(), ids=WRONG.keys())
def test_a_waiver_does_not_hold_for_anything_else(
    given: dict[str, object], days: int, why: str
) -> None:
    said, day = load_approvals(TEXT, "approvals.yaml"), DAY + timedelta(days=days)
    assert said.waiver(_audited(**given), day) is None
    assert said.no_waiver(_audited(**given), day) == why


NAMES, ARCHS = st.sampled_from(("a", "b")), st.sampled_from(("sm_90a", "sm_103a"))
SKELETONS, DAYS = st.sampled_from((ONE, OTHER)), st.integers(-2, 2)
WAIVERS = st.builds(
    Waiver, kernel=NAMES, arch=ARCHS, skeleton=SKELETONS, reason=st.just("Looked at."),
    owner=st.just("@x"), expires=DAYS.map(lambda days: DAY + timedelta(days=days)),
    since=st.none() | DAYS.map(lambda days: DAY + timedelta(days=days)),
)  # fmt: skip
RESULTS = st.builds(
    _audited, kernel=NAMES, arch=ARCHS, skeleton=SKELETONS, verdict=st.sampled_from(Verdict)
)


@given(st.lists(WAIVERS, max_size=4, unique_by=lambda one: (one.kernel, one.arch)), RESULTS, DAYS)
def test_a_waiver_that_holds_says_so_and_one_that_does_not_says_why(
    waivers: list[Waiver], audited: Audited, days: int
) -> None:
    said, day = Approvals(approvals=1, waivers=tuple(waivers)), DAY + timedelta(days=days)
    holding = [
        one
        for one in waivers
        if (one.kernel, one.arch, one.skeleton) == (audited.kernel, audited.arch, audited.skeleton)
        if audited.verdict is Verdict.UNPROVEN and (one.since or day) <= day <= one.expires
    ]
    found = said.waiver(audited, day)
    assert [found] == (holding or [None])
    named = any((one.kernel, one.arch) == (audited.kernel, audited.arch) for one in waivers)
    told = named and found is None and audited.verdict is not Verdict.PROVED
    assert bool(said.no_waiver(audited, day)) is told


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("reason: The table", "because: The table", "reason"),
        ('owner: "@someone"', 'owner: "some one"', "owner"),
        ("    expires: 2027-03-01\n", "", "expires"),
        ("expires: 2027-03-01", "expires: soon", "expires"),
        ("arch: sm_103a", "arch: hopper", "arch"),
        (f'"{OTHER}"', '"123"', "skeleton"),
        ("approvals: 1", "approvals: 2", "approvals"),
    ],
)
def test_approvals_that_say_too_little_or_too_much_are_bad_input(
    old: str, new: str, says: str
) -> None:
    assert TEXT.count(old) == 1
    with pytest.raises(InputError, match=rf"^approvals.yaml:\d+:\d+.*{says}|{says}"):
        load_approvals(TEXT.replace(old, new), "approvals.yaml")


@pytest.mark.parametrize("key", ["skeletons", "waivers"])
def test_a_kernel_that_is_named_twice_is_bad_input(key: str) -> None:
    entries = load_approvals(TEXT, "x").model_dump(mode="json", exclude_none=True)[key]
    twice = [*entries, *entries]
    text = f"approvals: 1\n{key}: {twice!r}".replace("'", '"')
    with pytest.raises(InputError, match=rf"^approvals.yaml: {key}: saw scale for sm_\d+a twice"):
        load_approvals(text, "approvals.yaml")


def test_a_changed_skeleton_is_found_and_the_approved_one_is_silent() -> None:
    right = kernel(RIGHT)
    first = audit(right, contract(), None)
    assert first.verdict is Verdict.PROVED
    assert audit(right, contract(), first.skeleton) == first
    changed = audit(right, contract(), kernel().cubin)
    (found,) = changed.findings
    assert (found.rule, found.verdict) == ("SKELETON", Verdict.UNPROVEN)
    assert (first.skeleton[:12] in found.saw, kernel().cubin[:12] in found.want) == (True, True)
