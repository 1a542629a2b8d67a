# SPDX-License-Identifier: Apache-2.0
"""Slots and pages: as many as the caches will need on any rank, all or nothing."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kimi_k3.engine.memory import Memory, PageLayout
from kimi_k3.ranks import Communicator, run_ranks
from kimi_k3.reference.state import KvCache


@given(
    tokens=st.integers(0, 200),
    page_size=st.integers(1, 9),
    dcp=st.sampled_from([1, 2, 3, 4]),
    interleave=st.integers(1, 5),
)
def test_pages_are_those_of_the_rank_that_holds_the_most(
    tokens: int, page_size: int, dcp: int, interleave: int
) -> None:
    """Against the cache's own count, and no page more than that rank fills."""
    cache = KvCache(torch.empty(0), interleave=interleave)

    def held(comm: Communicator) -> int:
        return cache.held(tokens, comm)

    most = max(run_ranks(dcp, held))
    pages = PageLayout(page_size, dcp, interleave).pages(tokens)
    assert (pages - 1) * page_size < most <= pages * page_size or pages == most == 0


def memory(pages: int = 5) -> Memory:
    return Memory(PageLayout(4), window=3, max_requests=2, pages=pages)


def test_a_request_holds_a_slot_per_position_of_a_window_and_never_the_null_slot() -> None:
    own = memory()
    first, second = own.reserve(8), own.reserve(9)
    assert first is not None
    assert second is not None
    assert (first.slots, first.pages) == ((1, 2, 3), (0, 1))
    assert (second.slots, second.pages) == ((4, 5, 6), (2, 3, 4))


@pytest.mark.parametrize("tokens", [13, 21], ids=["too few pages", "never enough pages"])
def test_a_request_that_does_not_fit_takes_nothing(tokens: int) -> None:
    own = memory()
    own.reserve(8)
    assert own.reserve(tokens) is None
    assert (own.slots.free, own.pages.free) == (3, 3)


def test_without_slots_no_page_is_taken() -> None:
    own = memory(pages=50)
    own.reserve(1)
    own.reserve(1)
    assert own.reserve(1) is None
    assert (own.slots.free, own.pages.free) == (0, 48)


def test_what_is_released_is_free_once() -> None:
    own = memory()
    room = own.reserve(5)
    assert room is not None
    with pytest.raises(ValueError, match=r"state slots \[1, 2, 3\] were never given back"):
        own.check_all_free()
    own.release(room)
    own.check_all_free()
    with pytest.raises(ValueError, match="given back, but not lent"):
        own.release(room)


def test_a_leaked_page_is_found_too() -> None:
    own = memory()
    own.pages.take(1)
    with pytest.raises(ValueError, match=r"pages \[0\] were never given back"):
        own.check_all_free()
