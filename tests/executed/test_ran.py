# SPDX-License-Identifier: Apache-2.0
"""Which ids are lost, for any structure of renames and splits."""

from hypothesis import given
from hypothesis import strategies as st

from fasttrack.ran import Collection, unmatched

_NAMES = st.sampled_from(["test_a", "test_b", "TestC::test_d"])
_FILES = st.sampled_from(["tests/test_x.py", "tests/test_y.py"])
_PARAMETERS = st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True)


def ids(file: str, name: str, parameters: list[int]) -> tuple[str, ...]:
    return tuple(f"{file}::{name}[{p}]" for p in parameters)


@given(st.lists(st.tuples(_FILES, _NAMES, _PARAMETERS), max_size=4))
def test_nothing_is_lost_between_equal_collections(tests: list[tuple[str, str, list[int]]]) -> None:
    all_ids = tuple(id_ for test in tests for id_ in ids(*test))
    assert unmatched(all_ids, all_ids) == ()
    assert set(unmatched(all_ids, ())) == set(all_ids)


@given(_FILES, _NAMES, _PARAMETERS, st.data())
def test_what_is_dropped_is_lost_and_nothing_else(
    file: str, name: str, parameters: list[int], data: st.DataObject
) -> None:
    kept = data.draw(st.lists(st.sampled_from(parameters), unique=True))
    base, head = ids(file, name, parameters), ids(file, name, kept)
    assert set(unmatched(base, head)) == set(base) - set(head)


@given(_FILES, _PARAMETERS, st.data())
def test_a_test_that_is_renamed_or_split_in_its_file_is_the_same(
    file: str, parameters: list[int], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(parameters)))
    base = ids(file, "test_a", parameters)
    head = ids(file, "test_low", parameters[:cut]) + ids(file, "test_high", parameters[cut:])
    assert unmatched(base, head) == ()


def test_a_new_test_of_other_parameters_stands_for_no_lost_one() -> None:
    base = ids("tests/test_x.py", "test_a", [1, 2])
    head = ids("tests/test_x.py", "test_new", [1, 3])
    assert unmatched(base, head) == base


def test_a_test_of_another_file_and_name_stands_for_no_lost_one() -> None:
    base = ids("tests/test_x.py", "test_a", [1])
    assert unmatched(base, ids("tests/test_y.py", "test_b", [1])) == base
    assert unmatched(base, ids("tests/test_y.py", "test_a", [1])) == ()


def test_marks_that_were_there_are_not_new() -> None:
    found = Collection({"t::a": ("skipif",)}, {"t::a": ("skipif", "xfail"), "t::b": ("skip",)})
    assert (dict(found.marked), found.lost, found.run) == ({"t::a": ("xfail",)}, (), "failed")
