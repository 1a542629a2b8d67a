# SPDX-License-Identifier: Apache-2.0
"""The narrowest choice of given cells."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from hypothesis import given, settings
from hypothesis import strategies as st

from fasttrack.cli.evidence.plan import command
from fasttrack.evidence.choice import Choice
from fasttrack.manifest.cells import Cell
from fasttrack.manifest.model import Manifest
from tests.evidence.plans import commit, engine, planner, region

SETS = ("units", "kinds", "regions", "hardware")


@cache
def everything() -> tuple[tuple[Cell, ...], Manifest]:
    """The cells of an engine with two regions of two kinds of hardware, and its manifest."""
    regions = [
        region(tier="served"),
        region(tier="kernel-tested", id="other", hardware=["h200"], tensor_parallel=[2]),
    ]
    with TemporaryDirectory() as where:
        commit(Path(where), engine(*regions))
        with planner(Path(where)) as found:
            return found.owed(Choice()), found.manifest


@settings(max_examples=60)
@given(st.data())
def test_the_narrowest_choice_asks_for_every_cell_and_names_nothing_that_it_need_not(
    data: st.DataObject,
) -> None:
    cells, manifest = everything()
    chosen = data.draw(st.lists(st.sampled_from(cells), min_size=1, max_size=6))
    choice = Choice.narrowest(chosen, manifest)
    assert all(choice.admits(cell) for cell in chosen)
    for name in SETS:
        names = getattr(choice, name)
        for one in names if len(names) > 1 else ():
            less = Choice(**{n: getattr(choice, n) for n in SETS} | {name: names - {one}})
            assert not all(less.admits(cell) for cell in chosen)


@settings(max_examples=20)
@given(st.data())
def test_its_options_are_those_of_the_command(data: st.DataObject) -> None:
    cells, manifest = everything()
    choice = Choice.narrowest(data.draw(st.lists(st.sampled_from(cells), min_size=1)), manifest)
    words = [word for option in choice.options() for word in option.split(" ")]
    with click.Context(command) as context:
        command.parse_args(context, words)
        for name in SETS:
            assert frozenset(context.params[name]) == getattr(choice, name)


def test_everything_needs_no_option() -> None:
    cells, manifest = everything()
    assert Choice.narrowest([c for c in cells if c.region], manifest).regions == frozenset()
    assert Choice.narrowest(cells, manifest).options() == ()
