# SPDX-License-Identifier: Apache-2.0
"""What follows from decided conditions, held against trying every number."""

from hypothesis import given
from hypothesis import strategies as st

from fasttrack.audit.flow.deduce import deduced
from fasttrack.audit.flow.names import Names
from fasttrack.audit.flow.state import start
from fasttrack.audit.flow.values import Value

WORD = 2**32
NUMBERS = (*range(40), *range(WORD - 12, WORD), 2**31 - 1, 2**31, 2**31 + 1)
SMALL = st.integers(-6, 12)


def _signed(word: int) -> int:
    return word - WORD if word >> 31 else word


class Condition:
    """A comparison of `m + by` or `(m + by) & mask` with a number, and its name."""

    def __init__(self, names: Names, m: int, drawn: tuple[int, int, str, int, bool]) -> None:
        self.by, self.mask, self.kind, self.bound, self.swapped = drawn
        word = Value(name=names.combine("IADD3", (Value(name=m), _number(self.by), Value(0))))
        if self.by == 0:
            word = Value(name=m)
        if self.mask:
            word = Value(name=names.combine("LOP3.LUT 192", (word, Value(self.mask), Value(0))))
        parts = (word, _number(self.bound))
        self.name = names.combine(self.kind, parts[::-1] if self.swapped else parts)

    def of(self, m: int) -> bool:
        """Whether it holds for a number."""
        left, right = (m + self.by) % WORD, self.bound % WORD
        left = left & self.mask if self.mask else left
        if self.swapped:
            left, right = right, left
        if self.kind == "EQ False":
            return left == right
        return left < right if self.kind == "LT True" else _signed(left) < _signed(right)


def _number(value: int) -> Value:
    return Value(value % WORD)


DRAWN = st.tuples(
    st.sampled_from((0, 0, -1, 1, 4)),
    st.sampled_from((0, 0, 0, 1, 3, 7)),
    st.sampled_from(("LT True", "LT False", "EQ False")),
    SMALL,
    st.booleans(),
)


@given(st.lists(DRAWN, max_size=4), DRAWN, st.sampled_from(NUMBERS), st.booleans())
def test_what_is_deduced_holds_for_every_number_of_which_the_facts_hold(
    facts: list[tuple[int, int, str, int, bool]],
    asked: tuple[int, int, str, int, bool],
    real: int,
    opposite: bool,
) -> None:
    names = Names()
    m = names.of(("bank", 0, 0x230), uniform=True)
    state = start(1)
    for one in (Condition(names, m, drawn) for drawn in facts):
        assert one.name is not None
        state.facts[one.name] = one.of(real)
    question = Condition(names, m, asked)
    assert question.name is not None
    name = names.opposite(question.name) if opposite else question.name
    assert name is not None
    found = deduced(names, state, name)
    assert found in (None, int(question.of(real) is not opposite))


def _asked(facts: dict[tuple[int, int, str, int, bool], bool], asked: object) -> int | None:
    names, state = Names(), start(1)
    m = names.of(("bank", 0, 0x230), uniform=True)
    for drawn, truth in facts.items():
        name = Condition(names, m, drawn).name
        assert name is not None
        state.facts[name] = truth
    question = Condition(names, m, asked).name  # type: ignore[arg-type]
    assert question is not None
    return deduced(names, state, question)


def test_a_positive_number_below_four_is_no_multiple_of_four() -> None:
    facts = {(0, 0, "LT False", 1, False): False, (0, 0, "LT True", 4, False): True}
    assert _asked(facts, (0, 3, "EQ False", 0, False)) == 0


def test_a_number_below_one_is_not_three() -> None:
    assert _asked({(0, 0, "LT False", 1, False): True}, (0, 0, "EQ False", 3, False)) == 0


def test_nothing_is_deduced_of_another_number_or_of_many() -> None:
    assert _asked({}, (0, 0, "EQ False", 3, False)) is None
    assert _asked({(0, 0, "LT True", 4, False): False}, (0, 3, "EQ False", 0, False)) is None
