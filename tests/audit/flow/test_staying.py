# SPDX-License-Identifier: Apache-2.0
"""Who stays where others of a block leave, held against indices that are worked out."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasttrack.audit.flow.layout import layout_of
from fasttrack.audit.flow.operands import Context
from fasttrack.audit.flow.staying import staying
from fasttrack.audit.flow.threads import WORD, Threads, Vector, truth_of
from tests.audit.flow.listing import contract_of, kernel_of

COUNT = 96
"""Threads of the block: no power of two, so that bits and sums of indices differ."""
EDGES = (0, 1, 5, 64, 127, 128, 1000, 2**25 - 1, 2**25, 2**31 - 1, 2**31, 2**32 - 100, 2**32 - 1)
OPERATIONS: dict[str, Callable[..., Vector]] = {
    "IADD3": lambda one, two, three: one + two + three,
    "VIADD": lambda one, two: one + two,
    "IMAD": lambda one, two, three: one * two + three,
    "LEA": lambda one, two, by: (one << by) + two,
    "SHF.L.U32": lambda one, by, _: one << by,
    "LOP3.LUT 252": lambda one, two, _: one | two,
    "LOP3.LUT 192": lambda one, two, _: one & two,
}
FORMS = {"IADD3": "vvv", "VIADD": "vv", "IMAD": "vvv", "LEA": "vvc", "SHF.L.U32": "vcc",
         "LOP3.LUT 252": "vvv", "LOP3.LUT 192": "vvv"}  # fmt: skip
"""Operands of an operation: any word, or a small number."""


@dataclass(frozen=True)
class Word:
    """An expression: an operation with its parts, a name of the launch, or a number."""

    what: str | int
    parts: tuple["Word", ...] = ()

    def name(self, context: Context) -> object:
        """How it is called: as `Names.combine` does."""
        if isinstance(self.what, int):
            return (self.what,)
        key = (self.what, *(one.name(context) for one in self.parts))
        return context.names.of(key, uniform=self.uniform)

    @property
    def uniform(self) -> bool:
        """Whether it is the same for all threads."""
        return self.what != "SR_TID.X" and all(one.uniform for one in self.parts)

    def worked_out(self, launch: dict[str, int]) -> Vector:
        """What it is in each thread."""
        if self.what == "SR_TID.X":
            return np.arange(COUNT, dtype=np.uint64)
        if not self.parts:
            one = self.what if isinstance(self.what, int) else launch[self.what]
            return np.full(COUNT, one, np.uint64)
        words = (one.worked_out(launch) for one in self.parts)
        return OPERATIONS[str(self.what)](*words) & np.uint64(WORD)


def _operation(words: st.SearchStrategy[Word]) -> st.SearchStrategy[Word]:
    small = st.integers(0, 12).map(Word)

    def of(what: str) -> st.SearchStrategy[Word]:
        forms = (words if form == "v" else small for form in FORMS[what])
        return st.tuples(*forms).map(lambda parts: Word(what, parts))

    return st.sampled_from(sorted(FORMS)).flatmap(of)


NUMBERS = (
    st.sampled_from((*EDGES, 2, 3, 4)) | st.integers(0, WORD)
    | st.integers(22, 32).map(lambda bits: (1 << bits) - 1)
)  # fmt: skip
LEAVES = st.sampled_from((Word("SR_TID.X"), Word("SR_CTAID.X"), Word("n"), Word("SR_TID.X")))
TID, BLOCK, N, END = Word("SR_TID.X"), Word("SR_CTAID.X"), Word("n"), Word("end")
ZERO = Word(0)
WORDS = st.recursive(LEAVES | st.sampled_from((0, 1, 4, 128, WORD)).map(Word), _operation,
                     max_leaves=5)  # fmt: skip
FACTORS = st.sampled_from((1, 4, 48, 64, 128, 256, 2**20)).map(Word)
OF_THREADS = st.just(TID) | FACTORS.map(lambda by: Word("IMAD", (TID, by, ZERO)))
OF_BLOCKS = st.sampled_from((BLOCK, N)).flatmap(
    lambda one: (
        st.just(one)
        | st.integers(5, 9).map(lambda by: Word("SHF.L.U32", (one, Word(by), ZERO)))
        | FACTORS.map(lambda by: Word("IMAD", (one, by, N)) if one is BLOCK else one)
    )
)
INDICES = st.tuples(OF_THREADS, OF_BLOCKS, st.integers(5, 9)).flatmap(
    lambda drawn: st.sampled_from((
        Word("IADD3", (*drawn[:2], ZERO)),
        Word("LOP3.LUT 252", (*drawn[:2], ZERO)),
        Word("LEA", (drawn[1], drawn[0], Word(drawn[2]))),
        Word("IMAD", (drawn[1], Word(1 << drawn[2]), drawn[0])),
    ))
)  # fmt: skip
"""What indices look like, but for what is added and by how much they are scaled."""


def context_of() -> Context:
    """What is known of a kernel."""
    kernel, contract = kernel_of("EXIT"), contract_of()
    return Context(layout_of(kernel, contract), Threads((COUNT, 1, 1)), clustered=False)


def _less(one: Vector, two: Vector, *, unsigned: bool) -> np.ndarray:
    flip = np.uint64(0 if unsigned else 0x8000_0000)
    return (one ^ flip) < (two ^ flip)


def _who_stays(
    context: Context, left: Word, right: Word, unsigned: bool, truth: bool, opposite: bool
) -> int:
    key = (f"LT {unsigned}", left.name(context), right.name(context))
    name = context.names.of(key, uniform=False)
    if opposite:
        name = context.names.of(("not", name), uniform=False)
    return staying(context, name, truth is not opposite)


@settings(max_examples=800, deadline=None)
@given(
    INDICES | WORDS, st.tuples(*(st.booleans(),) * 4), NUMBERS, NUMBERS,
    st.integers(0, COUNT - 1), st.integers(-1, 1),
)  # fmt: skip
def test_whoever_is_said_to_stay_stays_if_anybody_does(
    index: Word, how: tuple[bool, ...], block: int, n: int, near: int, by: int
) -> None:
    unsigned, truth, opposite, swapped = how
    launch = {"SR_CTAID.X": block, "n": n}
    words = index.worked_out(launch)
    launch["end"] = (int(words[near]) + by) & WORD  # where it matters which threads leave
    sides = (END, index) if swapped else (index, END)
    who = truth_of(_who_stays(context_of(), *sides, unsigned, truth, opposite), COUNT)
    leaves = _less(*(one.worked_out(launch) for one in sides), unsigned=unsigned) == truth
    assert leaves.all() or not leaves[who].any()


SCALED = {
    "a shifted block": Word("LEA", (BLOCK, TID, Word(7))),
    "a multiplied block": Word("IMAD", (BLOCK, Word(128), TID)),
    "bits of both": Word("LOP3.LUT 252", (TID, Word("SHF.L.U32", (BLOCK, Word(7), Word(0))),
                                          Word(0))),
    "fours of a table": Word("IMAD", (Word("LEA", (BLOCK, TID, Word(7))), Word(4), Word(0))),
    "the thread alone": TID,
}  # fmt: skip


@pytest.mark.parametrize("index", SCALED)
@pytest.mark.parametrize("unsigned", [True, False])
def test_the_first_stays_where_those_past_the_end_leave(index: str, unsigned: bool) -> None:
    context = context_of()
    assert _who_stays(context, SCALED[index], N, unsigned, truth=False, opposite=True) == 1
    assert _who_stays(context, N, SCALED[index], unsigned, truth=True, opposite=False) == 1
    assert not context.carried


@pytest.mark.parametrize("index", SCALED)
def test_the_last_stays_where_those_before_a_beginning_leave(index: str) -> None:
    who = _who_stays(context_of(), SCALED[index], N, unsigned=True, truth=True, opposite=False)
    assert who == 1 << COUNT - 1


@pytest.mark.parametrize("width", [5, 6])
def test_an_index_of_blocks_that_overlap_says_nothing_unless_it_fits_its_word(width: int) -> None:
    context, index = context_of(), Word("LEA", (BLOCK, TID, Word(width)))
    assert _who_stays(context, index, N, unsigned=True, truth=False, opposite=False) == 0
    assert context.carried
    context.unwrapped = True
    assert _who_stays(context, index, N, unsigned=True, truth=False, opposite=False) == 1


@pytest.mark.parametrize("index", [
    Word("LOP3.LUT 252", (TID, Word("SHF.L.U32", (BLOCK, Word(6), ZERO)), ZERO)),
    Word("IMAD", (TID, N, BLOCK)), Word("IMAD", (TID, TID, ZERO)),
    Word("LOP3.LUT 192", (TID, N, ZERO)),
    Word("LEA", (BLOCK, TID, TID)), BLOCK,
])  # fmt: skip
def test_an_index_that_need_not_grow_from_thread_to_thread_says_nothing(index: Word) -> None:
    context = context_of()
    context.unwrapped = True
    assert _who_stays(context, index, N, unsigned=True, truth=False, opposite=False) == 0
