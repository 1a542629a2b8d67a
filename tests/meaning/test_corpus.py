# SPDX-License-Identifier: Apache-2.0
"""The corpus is a product of real changes: enough of them, each valid, each with an honest twin."""

import ast
from itertools import islice
from pathlib import Path

import pytest

from fasttrack.rules import RULES

from .corpus import Cell, Effect, cells, cells_of, disguises, effects, made, pairs
from .judged import case_of, findings, through_git

NAMED = (
    "alias", "re-export", "attribute chain", "helper", "decorator", "class body",
    "default argument", "context manager", "comprehension", "star import", "functools.partial",
    "loop over names",
)  # fmt: skip


def test_the_product_is_of_enough_effects_and_all_named_disguises() -> None:
    families = [effect.family for effect in effects()]

    assert set(NAMED) <= set(disguises())
    assert len(families) >= 25
    assert families.count("action") >= 12
    assert len(families) - families.count("action") >= 12
    assert len(list(cells())) >= len(families) * len(NAMED)


def test_every_rule_that_may_answer_is_registered() -> None:
    assert {rule for effect in effects() for rule in effect.rules} <= {rule.id for rule in RULES}


@pytest.mark.parametrize("effect", effects(), ids=lambda effect: effect.name)
def test_every_cell_and_its_twin_is_valid_and_is_a_change_of_its_own(effect: Effect) -> None:
    seen = set()
    cells = list(cells_of(effect))
    for cell in cells:
        for one in (cell, cell.twin):
            change = made(one)
            for path, text in change.change.items():
                if path.endswith(".py"):
                    ast.parse(text, path)
            assert change.head != change.base, one.name
            seen.add(tuple(sorted(change.head.items())))
    assert len(seen) == 2 * len(cells)


def test_two_disguises_at_once_are_valid_too() -> None:
    for cell in islice(pairs(), 0, None, 7):
        for text in made(cell).change.values():
            ast.parse(text)


@pytest.mark.parametrize("cell", list(islice(cells(), 0, None, 61)), ids=lambda cell: cell.name)
def test_in_memory_a_cell_is_judged_as_it_is_through_git(cell: Cell, tmp_path: Path) -> None:
    for one in (cell, cell.twin):
        change = made(one)
        with through_git(change, tmp_path / str(one.honest)) as case:
            assert findings(case) == findings(case_of(change)), one.name
