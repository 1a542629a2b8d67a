# SPDX-License-Identifier: Apache-2.0
"""A cell has its effect when it runs, and no honest twin has one.

A sample is run here; `python -m meaning.executed` runs all of them, which takes some minutes.
"""

from collections.abc import Iterator
from itertools import islice

import pytest

from .corpus import Cell, Effect, cells_of, effects, made, pairs
from .executed import ACTING, SHOWING, TESTING, Ask, fails, running, trial, wrong

SAMPLE, PAIRS = 6, 181
"""One cell in so many of each effect, other disguises for each; and one pair of disguises."""


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    with running() as ask:
        yield ask


def sampled(effect: Effect) -> list[Cell]:
    """Some cells of an effect; those of another one are in other disguises."""
    cells = list(cells_of(effect))
    return cells[effects().index(effect) % min(SAMPLE, len(cells)) :: SAMPLE]


def test_every_effect_is_proved_in_one_way() -> None:
    names = [effect.name for effect in (*ACTING, *TESTING, *SHOWING)]
    assert sorted(names) == sorted(effect.name for effect in effects())


@pytest.mark.parametrize("effect", ACTING, ids=lambda effect: effect.name)
def test_an_import_has_the_effect_and_its_twin_has_none(effect: Effect, ask: Ask) -> None:
    assert wrong(sampled(effect), ask) == []


def test_two_disguises_at_once_keep_the_effect(ask: Ask) -> None:
    assert wrong(islice(pairs(), 0, None, PAIRS), ask) == []


@pytest.mark.parametrize("effect", TESTING, ids=lambda effect: effect.name)
def test_a_wrong_kernel_passes_the_weakened_tests_alone(effect: Effect, ask: Ask) -> None:
    cells = sampled(effect)

    assert fails(ask(trial(made(cells[0]).base, effect.data["mutant"])))
    assert wrong(cells, ask) == []


@pytest.mark.parametrize("effect", SHOWING, ids=lambda effect: effect.name)
def test_a_change_shows_where_its_twin_does_not(effect: Effect, ask: Ask) -> None:
    assert wrong(sampled(effect), ask) == []
