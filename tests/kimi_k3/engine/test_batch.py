# SPDX-License-Identifier: Apache-2.0
"""Steps: groups, tensors and padding, as `kimi_k3.step` words them."""

import pytest
import torch

from kimi_k3.engine.batch import Part, arrange
from kimi_k3.engine.drafters import Draft
from kimi_k3.engine.memory import PageLayout, Reservation
from kimi_k3.engine.metrics import StepKind
from kimi_k3.engine.options import unpadded
from kimi_k3.engine.request import Request
from kimi_k3.engine.state import RequestState
from kimi_k3.step import Group, Kind

PREFILL, WINDOW = Kind.PREFILL, Kind.WINDOW


LAYOUT = PageLayout(page_size=8)


def part(number: int, kind: Kind, rows: int, computed: int, pages: int = 2) -> Part:
    """Request `number` of ten prompt tokens with slots 10n + 1 to 3 and pages 10n and on."""
    slots = tuple(10 * number + column for column in (1, 2, 3))
    room = Reservation(99, slots, tuple(range(10 * number, 10 * number + pages)))
    state = RequestState(number, Request((0,) * 10, 5), [0] * 11, computed, number, room)
    tokens = tuple(100 * number + row for row in range(rows))
    return Part(state, kind, tokens, Draft(tokens[1:]))


def test_windows_come_first_then_prefills_each_ordered_by_rows() -> None:
    batch = arrange(
        [
            part(1, WINDOW, 3, 10),
            part(2, PREFILL, 4, 0),
            part(3, WINDOW, 1, 10),
            part(4, PREFILL, 2, 6),
            part(5, WINDOW, 3, 12, pages=4),
            part(6, PREFILL, 4, 4),
        ],
        unpadded,
    )
    assert [own.state.id for own in batch.parts] == [3, 1, 5, 4, 2, 6]
    assert batch.kind is StepKind.MIXED
    step = batch.step(3, LAYOUT, "cpu")
    assert step.shape.groups == (
        Group(WINDOW, 1, 1),
        Group(WINDOW, 2, 3),
        Group(PREFILL, 1, 2),
        Group(PREFILL, 2, 4),
    )
    assert step.shape.context == 15
    assert step.token_ids.tolist() == [
        *[300, 100, 101, 102, 500, 501, 502],
        *[400, 401, 200, 201, 202, 203, 600, 601, 602, 603],
    ]
    assert step.slots.tolist() == [[10 * n + c for c in (1, 2, 3)] for n in (3, 1, 5, 4, 2, 6)]
    assert step.accepted.tolist() == [3, 1, 5, 4, 2, 6]
    assert step.lengths.tolist() == [11, 13, 15, 8, 4, 8]
    assert step.block_table.tolist() == [
        [30, 31],
        [10, 11],
        [50, 51],
        [40, 0],
        [20, 0],
        [60, 0],
    ]  # of what is reserved, as many pages as the tokens of the step need
    assert {tensor.dtype for tensor in (step.token_ids, step.slots, step.accepted)} == {torch.long}
    assert sum(own.logit_rows for own in batch.parts) == len(step.shape.logit_rows())


def test_windows_of_one_length_are_padded_with_requests_of_slot_0_and_length_0() -> None:
    asked: list[tuple[int, int]] = []

    def padding(live: int, rows: int) -> int:
        asked.append((live, rows))
        return 4

    batch = arrange([part(1, WINDOW, 2, 10), part(2, WINDOW, 2, 11)], padding)
    assert (batch.kind, batch.null_requests, asked) == (StepKind.DECODE, 2, [(2, 2)])
    step = batch.step(3, LAYOUT, "cpu")
    assert step.shape.groups == (Group(WINDOW, 4, 2),)
    assert step.token_ids.tolist() == [100, 101, 200, 201, 0, 0, 0, 0]
    assert step.slots.tolist()[2:] == [[0, 0, 0]] * 2
    assert step.lengths.tolist() == [12, 13, 0, 0]
    assert step.accepted.tolist() == [1, 2, 1, 1]
    assert step.block_table.tolist()[2:] == [[0, 0]] * 2
    assert step.shape.context == 13


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ([part(1, WINDOW, 1, 10), part(2, WINDOW, 3, 10)], StepKind.RAGGED),
        ([part(1, PREFILL, 2, 0)], StepKind.PREFILL),
        ([part(1, WINDOW, 2, 10), part(2, PREFILL, 2, 0)], StepKind.MIXED),
    ],
    ids=["ragged", "prefill", "mixed"],
)
def test_other_steps_are_not_padded(parts: list[Part], kind: StepKind) -> None:
    batch = arrange(parts, lambda live, rows: live + 5)
    assert (batch.kind, batch.null_requests) == (kind, 0)


def test_a_padding_that_is_too_small_is_an_error() -> None:
    with pytest.raises(ValueError, match="a padding of 2 requests of 1 rows to 1"):
        arrange([part(1, WINDOW, 1, 10), part(2, WINDOW, 1, 10)], lambda live, rows: 1)


def test_only_a_window_or_the_end_of_a_prompt_yields_a_token() -> None:
    assert part(1, WINDOW, 1, 10).decides
    assert part(1, PREFILL, 4, 6).decides
    assert part(1, PREFILL, 10, 0).decides
    assert not part(1, PREFILL, 3, 6).decides


def test_a_request_that_waits_has_no_place_in_a_step() -> None:
    state = RequestState(4, Request((0,), 1), [0])
    with pytest.raises(ValueError, match="request 4 has no slots and no pages"):
        arrange([Part(state, PREFILL, (0,))], unpadded).step(1, LAYOUT, "cpu")
