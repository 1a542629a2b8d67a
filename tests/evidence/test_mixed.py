# SPDX-License-Identifier: Apache-2.0
"""Cells of one unit's bytes need a state of their surroundings that all were measured with."""

from hypothesis import given
from hypothesis import strategies as st

from fasttrack.evidence.mixed import mixed
from fasttrack.evidence.predicates.common import BoundaryFile
from fasttrack.evidence.statement import Statement
from fasttrack.vocabulary import Kind
from tests.evidence.strategies import good

ROWS = (1, 2, 8)
UNITS = ("kda", "moe")
runs = st.lists(
    st.tuples(
        st.sampled_from(UNITS),
        st.sampled_from(ROWS),
        st.dictionaries(st.sampled_from("ab"), st.sampled_from("01"), max_size=2),
    ),
    max_size=8,
)


def statement(unit: str, rows: int, state: dict[str, str]) -> Statement:
    told = good(Kind.KERNEL_TEST, values={"rows": rows}, unit=unit)
    boundary = tuple(BoundaryFile(path=p, sha256=digit * 64) for p, digit in sorted(state.items()))
    inputs = told.predicate.inputs.model_copy(update={"boundary": boundary})
    return Statement(told.predicate_type, told.predicate.model_copy(update={"inputs": inputs}))


@given(runs=runs)
def test_a_unit_is_mixed_when_each_state_lacks_a_cell(
    runs: list[tuple[str, int, dict[str, str]]],
) -> None:
    found = {unit for unit, _, _ in mixed(statement(*run) for run in runs)}
    for unit in UNITS:
        mine = [(rows, state) for its, rows, state in runs if its == unit]
        cells = {rows for rows, _ in mine}
        whole = any({r for r, other in mine if other == state} == cells for _, state in mine)
        assert (unit in found) == (bool(mine) and not whole)


def test_the_first_file_that_differs_is_named() -> None:
    two = [statement("kda", 1, {"a": "0", "b": "0"}), statement("kda", 2, {"a": "0", "b": "1"})]
    (text,) = mixed(two).values()
    assert text == "2 states of what is just outside the roots, b first"
    gone = [statement("kda", 1, {"b": "0"}), statement("kda", 2, {"a": "0", "b": "0"})]
    assert next(iter(mixed(gone).values())).endswith("roots, a first")
