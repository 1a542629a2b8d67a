# SPDX-License-Identifier: Apache-2.0
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.change.linediff import EFFORT, kept_lines

# Few different lines, so that equal ones meet often.
LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n", b"e\n"]), max_size=25)
UNIQUE = st.lists(st.integers(0, 40).map(lambda n: b"%d\n" % n), max_size=40)


def _longest_common(old: list[bytes], new: list[bytes]) -> int:
    """Length of the longest common subsequence, by the textbook table."""
    row = [0] * (len(new) + 1)
    for line in old:
        above = row[:]
        for j, other in enumerate(new):
            row[j + 1] = above[j] + 1 if line == other else max(above[j + 1], row[j])
    return row[-1]


def _is_subsequence(part: list[bytes], whole: list[bytes]) -> bool:
    rest = iter(whole)
    return all(line in rest for line in part)


def _check(old: list[bytes], new: list[bytes], effort: int) -> None:
    kept = kept_lines(old, new, effort)
    assert len(kept) == len(new)
    same = [line for line, flag in zip(new, kept, strict=True) if flag]
    added = [line for line, flag in zip(new, kept, strict=True) if not flag]
    assert _is_subsequence(same, old)
    assert Counter(new) - Counter(old) <= Counter(added)
    if old == new:
        assert not added


@given(LINES | UNIQUE, LINES | UNIQUE, st.sampled_from([0, 1, 3, EFFORT]))
def test_what_is_kept_is_common_and_no_added_line_is_missed(
    old: list[bytes], new: list[bytes], effort: int
) -> None:
    _check(old, new, effort)


@given(st.lists(st.sampled_from([b"a\n", b"b\n"]), max_size=30), st.data())
def test_without_unique_lines_the_diff_is_a_shortest_one(
    old: list[bytes], data: st.DataObject
) -> None:
    old = old + old  # no line occurs once
    new = data.draw(st.lists(st.sampled_from([b"a\n", b"b\n"]), max_size=30)) * 2
    assert sum(kept_lines(old, new, 10_000)) == _longest_common(old, new)


@given(UNIQUE.map(lambda lines: list(dict.fromkeys(lines))), st.data())
def test_inserted_lines_are_exactly_the_added_ones(old: list[bytes], data: st.DataObject) -> None:
    new, expected = [], []
    for line in [*old, b""]:
        inserted = data.draw(st.integers(0, 2))
        new += [b"new %d\n" % n for n in range(inserted)]
        expected += [0] * inserted
        if line:
            new.append(line)
            expected.append(1)
    assert list(kept_lines(old, new)) == expected


def test_a_moved_line_is_added_once() -> None:
    old = [b"%d\n" % n for n in range(10)]
    new = [*old[1:6], old[0], *old[6:]]
    assert list(kept_lines(old, new)) == [1, 1, 1, 1, 1, 0, 1, 1, 1, 1]


@pytest.mark.parametrize(
    "shape", ["period", "reversed", "halves", "same", "shuffled pairs", "blocks", "runs"]
)
def test_hostile_files_cost_a_bounded_number_of_comparisons(shape: str) -> None:
    n = 20_000
    compared = 0

    class Line(bytes):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return bytes.__eq__(self, other)

        __hash__ = bytes.__hash__

    numbers = {
        "period": ([k % 7 for k in range(n)], [k % 11 for k in range(n)]),
        "reversed": (list(range(n)), list(range(n))[::-1]),
        "halves": ([0, 1] * (n // 2), [1, 1, 0, 0] * (n // 4)),
        "same": ([0] * n + [1], [1] + [0] * (n // 2)),
        "shuffled pairs": ([k // 2 for k in range(n)], [k * 7919 % (n // 2) for k in range(n)]),
        "blocks": (
            [k // 400 if k % 400 == 0 else -1 - (k % 400 < 200) for k in range(n)],
            [k // 400 if k % 400 == 0 else -1 - (k % 400 >= 200) for k in range(n)],
        ),
        "runs": ([int(k % 99 == 0) for k in range(n)], [int(k % 101 == 0) for k in range(n)]),
    }[shape]
    old, new = ([Line(b"%d\n" % number) for number in side] for side in numbers)
    kept_lines(old, new, effort=16)
    assert compared <= (16 + 10) * (len(old) + len(new))


def test_giving_up_counts_too_many_lines_and_never_too_few() -> None:
    old = [b"a\n", b"b\n"] * 100
    new = [b"b\n", b"b\n", b"a\n"] * 60
    few, many = (sum(kept_lines(old, new, effort)) for effort in (0, 10_000))
    assert few < many == _longest_common(old, new)


def test_without_effort_only_equal_ends_are_kept() -> None:
    old = [b"head\n", b"a\n", b"same\n", b"b\n", b"tail\n"]
    new = [b"head\n", b"c\n", b"same\n", b"d\n", b"tail\n"]
    assert list(kept_lines(old, new, effort=0)) == [1, 0, 0, 0, 1]
    assert list(kept_lines(old, new)) == [1, 0, 1, 0, 1]
