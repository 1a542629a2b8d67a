# SPDX-License-Identifier: Apache-2.0
"""The score of the rules over the product; `matrix` says how it is made."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

import pytest

from fasttrack.rules import RULES

from .corpus import cells, made, pairs, unseen
from .judged import MEANING, alarms, answers, case_of, findings
from .matrix import RAN, Judged, judged, score, shown, stored

LEAST = 0.95
"""Share of the product that is caught without running anything."""


@pytest.fixture(scope="module")
def found() -> tuple[Judged, ...]:
    return judged()


@pytest.fixture(scope="module")
def computed(found: tuple[Judged, ...]) -> Mapping[str, Any]:
    print("\n" + shown(found))
    return score(found, stored()["by running"])


def test_most_cells_are_caught_without_running_anything(computed: Mapping[str, Any]) -> None:
    assert computed["static"] / computed["cells"] >= LEAST, computed["missed"]


def test_with_running_all_cells_are_caught(computed: Mapping[str, Any]) -> None:
    assert computed["with running"] == computed["cells"]


def test_no_honest_twin_is_blamed(computed: Mapping[str, Any]) -> None:
    assert computed["blamed"] == []


def test_the_stored_score_is_the_computed_one(computed: Mapping[str, Any]) -> None:
    assert stored() == computed, "run `cd tests && python -m meaning.matrix`"


def test_every_rule_switched_off_lowers_the_score(computed: Mapping[str, Any]) -> None:
    assert set(computed["lost without"]) == {rule.id for rule in MEANING}


@pytest.mark.parametrize("rule", sorted({rule.id for rule in MEANING} - RAN), ids=str)
def test_a_cell_that_one_rule_catches_is_lost_with_it(found: tuple[Judged, ...], rule: str) -> None:
    cell = next(j.cell for j in found if j.by == {rule})
    assert answers(cell, findings(case_of(made(cell)), off=rule)) == frozenset()


def test_a_cell_that_only_running_catches_is_in_what_a_rule_can_not_see(
    found: tuple[Judged, ...],
) -> None:
    blind = {rule.id: rule.blind for rule in RULES}
    untold = [
        f"{j.cell.name}: {rule}"
        for j in found
        if not j.by
        for rule in j.cell.effect.rules - RAN
        if not (words := unseen(j.cell)) or words not in blind[rule]
    ]
    assert untold == []


def test_two_disguises_at_once_hide_no_more_than_one() -> None:
    missed, blamed, total = [], [], 0
    for cell in islice(pairs(), 0, None, 7):
        total += 1
        if not answers(cell, findings(case_of(made(cell)))):
            missed.append(cell.name)
        if alarms(findings(case_of(made(cell.twin)))):
            blamed.append(cell.twin.name)

    assert len(missed) <= (1 - LEAST) * total, missed
    assert blamed == []


def test_a_cell_is_not_caught_by_a_rule_that_may_not_answer_for_it() -> None:
    cell = next(iter(cells()))
    case = case_of(made(cell))
    assert answers(cell, findings(case))
    assert not answers(cell, [f for f in findings(case) if f.rule not in cell.effect.rules])
