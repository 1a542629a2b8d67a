# SPDX-License-Identifier: Apache-2.0
"""This repository's own policy gives its fixtures the verdicts that they name, on any day."""

from datetime import date
from pathlib import Path

import pytest

from fasttrack.policy_fixtures import PolicyFixture, load_fixtures, run_fixtures
from fasttrack.rules import RULES
from fasttrack.workspace import Workspace, open_workspace

ROOT = Path(__file__).parents[2]
FIXTURES = load_fixtures(ROOT / "manifests" / "policy-tests")
CAN_NOT_FIRE = {
    "FT126": "a fixture has no target branch that moves on",
    "FT129": "a fixture has one commit",
    "FT230": "a fixture runs nothing",
    "FT310": "a note",
    "FT318": "the policy lets manifest and code arrive together",
    **{f"FT{number}": "a fixture runs nothing" for number in range(414, 417)},
    "FT502": "no fixture can sign as the lab",
    "FT533": "no fixture can sign as the lab",
    "FT534": "a note",
    "FT535": "no fixture has machine code",
    **{f"FT{number}": "no fixture can sign as the lab" for number in range(506, 516)},
    **{f"FT{number}": "a note" for number in range(516, 533)},
}
"""Rules that no fixture can report under this policy, with the reason."""


@pytest.fixture(scope="module")
def workspace() -> Workspace:
    return open_workspace(ROOT)


@pytest.mark.parametrize("name", FIXTURES)
def test_a_fixture_holds_on_a_day_long_after_the_lease(workspace: Workspace, name: str) -> None:
    (result,) = run_fixtures(workspace, {name: FIXTURES[name]}, date(2031, 1, 1))
    assert result.wrong == ""


def test_every_rule_that_can_report_here_has_a_fixture() -> None:
    named = {rule for fixture in FIXTURES.values() for rule in fixture.expect.rules}
    assert named | CAN_NOT_FIRE.keys() == {rule.id for rule in RULES}
    assert not named & CAN_NOT_FIRE.keys()


def test_a_fixture_s_own_day_decides_its_verdict(workspace: Workspace) -> None:
    base = FIXTURES["the-last-day-of-the-lease-counts"]
    later: PolicyFixture = base.model_copy(update={"as_of": date(2027, 5, 28)})
    unnamed = base.model_copy(update={"as_of": None})

    (after,) = run_fixtures(workspace, {"after": later}, date(2026, 12, 1))
    (before,) = run_fixtures(workspace, {"before": unnamed}, date(2026, 12, 1))

    assert after.rules == ("FT311",)
    assert before.wrong == ""
