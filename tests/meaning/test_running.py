# SPDX-License-Identifier: Apache-2.0
"""What running adds to the score: the rest of the product.

Only the cells that the stored score lists as missed are run, which `test_matrix` holds against the
rules; `python -m meaning.matrix --run` does the same for whatever is missed today, and stores it.
"""

import pytest

from .corpus import Cell, cells
from .judged import alarms, findings
from .matrix import RAN, after_running, stored, told

MISSED = [cell for cell in cells() if cell.name in stored()["missed"]]
"""Cells that are not caught without running them."""
FEW = [cell for cell in MISSED if "only" in cell.effect.data]
"""Those of effects that are written for being run, two of each."""
TWINS = [cell for cell in MISSED if cell not in FEW][::7] + FEW[::2]


@pytest.mark.parametrize("cell", MISSED, ids=lambda cell: cell.name)
def test_what_reading_misses_is_caught_by_running_it(cell: Cell) -> None:
    case = after_running(cell)
    by = told(case)

    assert sorted(by) == stored()["by running"][cell.name]
    assert by
    for rule in by:
        assert told(case, off=rule) == by - {rule}


@pytest.mark.parametrize("cell", TWINS, ids=lambda cell: cell.name)
def test_an_honest_twin_is_not_blamed_for_what_it_does_when_it_runs(cell: Cell) -> None:
    assert alarms(findings(after_running(cell.twin))) == ()


def test_all_cells_that_are_missed_are_cells() -> None:
    assert [cell.name for cell in MISSED] == stored()["missed"] == list(stored()["by running"])


def test_every_executed_rule_switched_off_lowers_the_score_with_running() -> None:
    alone = [rules for rules in stored()["by running"].values() if len(rules) == 1]
    assert {rule for rules in alone for rule in rules} == RAN
