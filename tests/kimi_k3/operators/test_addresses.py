# SPDX-License-Identifier: Apache-2.0
"""Writes that leave padding's memory alone, and where requests start."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from kimi_k3.operators.addresses import positions, select_live, starts, write_rows, write_slots
from kimi_k3.step import Group, GroupTensors, Kind
from tests.kimi_k3.operators.builders import bits

ROWS = 6
PLACES = st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=ROWS, unique=True)


def memory() -> torch.Tensor:
    """NaNs of different bits."""
    return (
        (torch.arange(2 * ROWS, dtype=torch.int32) + 0x7FC00001).view(torch.float32).view(ROWS, 2)
    )


@given(places=PLACES, alive=st.lists(st.booleans(), min_size=ROWS, max_size=ROWS))
def test_only_live_rows_are_written_wherever_the_others_point(
    places: list[int], alive: list[bool]
) -> None:
    live = torch.tensor(alive[: len(places)])
    target, values = memory(), torch.arange(2.0 * len(places)).view(-1, 2)
    values[~live] = torch.nan
    # Padding points at the last live row's place, or far outside.
    wild = torch.where(live, torch.tensor(places), 1 << 40)
    write_rows(target, wild, values, live)
    want = memory()
    for place, value, written in zip(places, values, live, strict=True):
        if written:
            want[place] = value
    assert torch.equal(bits(target), bits(want))


@given(places=PLACES, alive=st.lists(st.booleans(), min_size=ROWS, max_size=ROWS))
def test_padding_leaves_the_null_slot_as_it_is(places: list[int], alive: list[bool]) -> None:
    live = torch.tensor(alive[: len(places)]) & (torch.tensor(places) > 0)
    target, values = memory(), torch.arange(2.0 * len(places)).view(-1, 2)
    values[~live] = torch.nan
    write_slots(target, torch.where(live, torch.tensor(places), -3), values, live)
    want = memory()
    for place, value, written in zip(places, values, live, strict=True):
        if written:
            want[place] = value
    assert torch.equal(bits(target), bits(want))


def group(kind: Kind) -> GroupTensors:
    """A fresh request, a continued one, one without a slot, one without a length, a null start."""
    return GroupTensors(
        Group(kind, 5, 2),
        slice(0, 10),
        torch.tensor([[3, 4], [5, 6], [0, 0], [7, 8], [9, 0]], dtype=torch.int32),
        torch.tensor([2, 2, 99, 99, 2], dtype=torch.int32),
        torch.zeros(5, 1, dtype=torch.int32),
        torch.tensor([2, 7, 4, 0, 7], dtype=torch.int32),
    )


def test_a_window_starts_from_the_accepted_slot() -> None:
    begin = starts(group(Kind.WINDOW))
    assert begin.live.tolist() == [True, True, False, False, False]
    assert begin.fresh.tolist() == [False] * 5
    assert begin.slot.tolist() == [4, 6, 0, 0, 0]
    assert begin.offset.tolist()[:2] == [1, 1]


def test_a_prompt_from_the_first_token_on_starts_from_nothing() -> None:
    begin = starts(group(Kind.PREFILL))
    assert begin.live.tolist() == [True, True, False, False, False]
    assert begin.fresh.tolist() == [True, False, False, False, False]
    assert begin.slot.tolist() == [3, 6, 0, 0, 0]


def test_positions_are_those_of_the_newest_tokens() -> None:
    assert positions(group(Kind.WINDOW)).tolist()[:2] == [[0, 1], [5, 6]]


def test_padding_is_selected_to_zero_not_multiplied() -> None:
    rows = torch.full((4, 3), torch.nan)
    rows[2:] = 1.0
    assert (
        select_live(torch.tensor([False, True]), rows).tolist() == [[0.0] * 3] * 2 + [[1.0] * 3] * 2
    )
