# SPDX-License-Identifier: Apache-2.0
"""An object is found through whatever hands it on; running the program is the second opinion."""

from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .chains import ACTS, CARRIERS, HANDOVERS, OWN, PLACES, SHARED, STARTS, Chain, ran
from .judged import alarms, case_of, findings

MODULES = 2
"""Modules that hand an object on; FT201 says that it follows no more."""
LEAST, CHAINS_TRIED = 0.9, 400
"""Share of random chains of two to five hands that is found. What one pair of hands hides is found
in all cases; of many in a row the look through the text, before anything is parsed, loses some."""


def _names(table: Mapping[str, object]) -> st.SearchStrategy[str]:
    return st.sampled_from(sorted(table))


STEPS = st.lists(_names(CARRIERS) | _names(HANDOVERS).map("/{}".format), max_size=5).filter(
    lambda steps: sum(step.startswith("/") for step in steps) <= MODULES
)
CHAINS = st.builds(
    Chain, start=_names(STARTS), steps=STEPS.map(tuple), act=_names(ACTS), place=_names(PLACES)
)


def agrees(chain: Chain) -> None:
    """Holds the rules against what running the program and its twin does."""
    change, twin = chain.made(SHARED), chain.made(OWN)
    assert ran(change, SHARED), chain
    assert not ran(twin, SHARED), chain

    told = {found.rule for found in alarms(findings(case_of(change)))}
    assert told, f"missed: {chain}"
    assert told <= {"FT201", "FT206"}, chain
    assert alarms(findings(case_of(twin))) == (), f"blamed: {chain}"


@pytest.mark.parametrize("step", ["", *CARRIERS, *(f"/{name}" for name in HANDOVERS)])
def test_one_pair_of_hands_hides_nothing(step: str) -> None:
    for start in STARTS:
        agrees(Chain(start, (step,) if step else (), "assign", "module"))


@pytest.mark.parametrize("act", ACTS)
def test_no_way_and_no_place_of_a_change_hides_it(act: str) -> None:
    for place in PLACES:
        agrees(Chain("import as", ("alias",), act, place))


@settings(max_examples=100)
@given(CHAINS)
def test_nobody_is_blamed_for_many_hands_on_own_objects(chain: Chain) -> None:
    twin = chain.made(OWN)
    assert not ran(twin, SHARED)
    assert alarms(findings(case_of(twin))) == ()


def test_many_hands_hide_few_changes() -> None:
    random, missed = Random(6), []
    for _ in range(CHAINS_TRIED):
        change = (chain := _drawn(random)).made(SHARED)
        assert ran(change, SHARED), chain
        if not alarms(findings(case_of(change))):
            missed.append(chain)
    assert len(missed) <= (1 - LEAST) * CHAINS_TRIED, missed


def _drawn(random: Random) -> Chain:
    steps = random.choices([*CARRIERS, *(f"/{name}" for name in HANDOVERS)], k=random.randint(2, 5))
    while sum(step.startswith("/") for step in steps) > MODULES:
        steps.remove(next(step for step in steps if step.startswith("/")))
    start, act, place = (random.choice(sorted(table)) for table in (STARTS, ACTS, PLACES))
    return Chain(start, tuple(steps), act, place)
