# SPDX-License-Identifier: Apache-2.0
"""What is left out before parsing has no effects: the same are found when everything is parsed."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.meaning.around import Around
from fasttrack.meaning.effects import brought
from fasttrack.meaning.lines import Lines, masked
from fasttrack.meaning.looks import Looks
from fasttrack.meaning.pieces import PIECES_LIMIT, Sketch, outline, pieces_of
from fasttrack.meaning.project import Project
from fasttrack.meaning.sketch import Look
from fasttrack.meaning.texts import Text

from .chains import ACTS, CARRIERS, HANDOVERS, PLACES, SHARED, STARTS, Chain
from .corpus import Cell, Made, cells, disguises, made
from .judged import case_of

LONG_CHAINS = 120
LOST_OF_LONG_CHAINS = 0.12
"""Of chains of up to five carriers over modules: what the look through the text does not follow."""


def _whole(self: Look, *, lending: bool = False) -> Sketch:
    return Sketch(self.source, whole=True, hits=frozenset())


def _all_of(self: Project, path: str, source: str | None = None) -> Sketch:
    text = self._text_of(path) if source is None else source
    return Sketch(text, whole=True, hits=frozenset({0}))


def _yes(*_: object) -> bool:
    return True


@contextmanager
def everything_parsed() -> Iterator[None]:
    """The plain formulation: no file and no function is left out."""
    with (
        mock.patch.object(Look, "reduced", _whole),
        mock.patch.object(Project, "sketch", _all_of),
        mock.patch.object(Project, "touches", _yes),
        mock.patch.object(Project, "stirs", _yes),
        mock.patch.object(Looks, "matters", _yes),
    ):
        yield


def effects(change: Made) -> set[tuple[str, str, str, int]]:
    """What a change brings, by place."""
    found = brought(case_of(change))
    return {(entry.path, e.kind, e.target, e.line) for entry, e in found}


def lost(change: Made) -> set[tuple[str, str, str, int]]:
    """Effects that are found only when everything is parsed."""
    with everything_parsed():
        plain = effects(change)
    return plain - effects(change)


@pytest.mark.parametrize("disguise", disguises())
def test_no_effect_of_the_corpus_is_lost_before_parsing(disguise: str) -> None:
    def both(cell: Cell) -> tuple[Cell, Cell]:
        return cell, cell.twin

    chosen = [c for cell in cells() if cell.disguise == disguise for c in both(cell)]
    assert chosen
    assert {cell.name: found for cell in chosen if (found := lost(made(cell)))} == {}


def test_no_effect_is_lost_behind_one_pair_of_hands() -> None:
    kinds = [*CARRIERS, *(f"/{name}" for name in HANDOVERS)]
    chains = [
        Chain(start, (step,), act, place)
        for number, (start, step) in enumerate((s, k) for s in STARTS for k in kinds)
        for act in [list(ACTS)[number % len(ACTS)]]
        for place in [list(PLACES)[number % len(PLACES)]]
    ]
    assert [chain for chain in chains if lost(chain.made(SHARED))] == []


def test_few_effects_are_lost_behind_many_hands() -> None:
    chance = random.Random(3)
    missed = [chain for _ in range(LONG_CHAINS) if lost((chain := _long(chance)).made(SHARED))]
    assert len(missed) <= LOST_OF_LONG_CHAINS * LONG_CHAINS, missed


def _long(chance: random.Random) -> Chain:
    steps: list[str] = []
    for _ in range(chance.randint(2, 5)):
        over = chance.random() < 0.25 and sum(s.startswith("/") for s in steps) < 2
        steps.append(f"/{chance.choice(list(HANDOVERS))}" if over else chance.choice([*CARRIERS]))
    picked = (chance.choice([*STARTS]), chance.choice([*ACTS]), chance.choice([*PLACES]))
    return Chain(picked[0], tuple(steps), picked[1], picked[2])


FRAGMENTS = (
    "x = 1\n",
    '"""a text\nover lines"""\n',
    "def f(a):\n    return a\n",
    "@f\nclass A:\n    b = 1\n",
    "if x:\n    y = 2\nelse:\n    y = 3\n",
    "z = (\n    1,\n)\n",
    "# a word\n",
    "\n",
    "w = x + \\\n  1\n",
    "f(x)\n",
    "async def g():\n    pass\n",
    's = f"{x} and {y!r}"\n',
    "try:\n    x\nfinally:\n    x\n",
)


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=8).map("".join))
def test_pieces_cover_a_source_without_overlap(source: str) -> None:
    lines = Lines(masked(source))
    pieces = list(pieces_of(lines))
    ends = [0, *(piece.end for piece in pieces)]
    assert all(not "".join(lines.rows[: pieces[0].start]).strip() for _ in pieces[:1])
    assert [piece.start for piece in pieces[1:]] == ends[1:-1]
    assert ends[-1] == len(lines.rows) or not pieces


@given(st.text(alphabet="ab\"'#\\\n f{}=.()[]:é", max_size=60))
def test_a_masked_source_has_the_lines_of_the_source(source: str) -> None:
    assert masked(source).count("\n") == source.count("\n")


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        ("x = 1  # torch.seed()\n", "x = 1  \n"),
        (f"x = '{'a' * 90}'\n", 'x = ""\n'),
        ("x = 'seed'\n", "x = 'seed'\n"),
        (f"x = f'{{torch.seed()}}{'a' * 90}'\n", f"x = f'{{torch.seed()}}{'a' * 90}'\n"),
        ("x = a + \\\n    b\n", "x = a +      b\n\n"),
        ("\uff53etattr(a, 'b', 1)\n", "setattr(a, 'b', 1)\n"),
    ],
)
def test_only_what_can_do_nothing_is_masked(source: str, kept: str) -> None:
    assert masked(source) == kept


def test_a_function_that_is_not_wanted_leaves_its_name() -> None:
    source = "import a\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return 2\n"
    assert outline(source, lambda text: "2" in text).source.split("\n")[3:8] == [
        "class f: pass", "", "", "", "def g():",
    ]  # fmt: skip


def test_a_source_of_very_many_pieces_is_parsed_whole() -> None:
    source = "import torch\n" + "torch.x = 1\n" * (PIECES_LIMIT + 1)
    nothing = Around(
        lambda *_: (), lambda _: {"torch": 0}, lambda _: frozenset(), lambda _: frozenset()
    )
    assert Look(Text(source), nothing).reduced().whole
