# SPDX-License-Identifier: Apache-2.0
"""Slots, convolution windows, pages and cache formats."""

import pytest
import torch

from kimi_k3.ranks import SingleRank
from kimi_k3.reference.state import (
    FP8,
    Caches,
    CacheShape,
    KdaState,
    KvCache,
    PageWindow,
    SlotWindow,
    allocate,
    to_fp8,
)
from kimi_k3.rounding import exact, stock
from tests.kimi_k3.reference.builders import model_weights, odd


def slots(q: int, table: list[list[int]], accepted: list[int]) -> SlotWindow:
    return SlotWindow(q, torch.tensor(table), torch.tensor(accepted))


class Rank:
    """One rank of a group, for code that asks only who it is."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def reduce_scatter(self, x: torch.Tensor, dim: int) -> torch.Tensor:
        raise NotImplementedError

    def all_gather(self, x: torch.Tensor, dim: int) -> torch.Tensor:
        raise NotImplementedError


def test_the_start_slot_is_that_of_the_last_accepted_token() -> None:
    window = slots(3, [[4, 5, 6], [9, 8, 7], [0, 0, 0], [-1, 2, 3]], [3, 1, 0, 2])
    assert window.start.tolist() == [6, 9, 0, 0]
    assert window.live.tolist() == [True, True, False, False]


def test_a_request_whose_start_slot_is_null_is_padding() -> None:
    assert slots(3, [[4, 0, 6]], [2]).live.tolist() == [False]


@pytest.mark.parametrize(
    ("q", "table", "accepted", "message"),
    [
        (4, [[1, 2, 3]], [1], "needs more"),
        (0, [[1]], [1], "needs more"),
        (1, [[1], [2]], [1], "accepted is"),
        (2, [[1, 2]], [0], "accepted 0 of 2"),
        (2, [[1, 2]], [3], "accepted 3 of 2"),
        (2, [[1, 2], [3, 1]], [1, 1], "share a state slot"),
        (2, [[2, 2]], [1], "share a state slot"),
    ],
)
def test_impossible_slot_windows_are_refused(
    q: int, table: list[list[int]], accepted: list[int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        slots(q, table, accepted)


@pytest.mark.parametrize(
    ("lengths", "message"), [([2], "shorter than its 3 rows"), ([3, 3], "want"), ([-1], "shorter")]
)
def test_impossible_page_windows_are_refused(lengths: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PageWindow(3, torch.zeros(1, 4, dtype=torch.int32), torch.tensor(lengths))


def test_rows_know_their_positions() -> None:
    window = PageWindow(2, torch.zeros(3, 4, dtype=torch.int32), torch.tensor([5, 0, 2]))
    assert list(window.live_rows()) == [(0, 0, 3), (1, 0, 4), (4, 2, 0), (5, 2, 1)]


@pytest.mark.parametrize("q", range(1, 9))
@pytest.mark.parametrize("accepted", range(1, 9))
def test_the_convolution_window_rolls_like_a_list(q: int, accepted: int) -> None:
    """Entry i of a window that followed 8 rows is numbered i; taps and successor are slices."""
    state = KdaState(torch.zeros(10, 1, 1, 1), torch.zeros(10, 1, 10))
    state.conv[4, 0] = torch.arange(10.0)
    window = slots(q, [[4, *range(1, 4), *range(5, 9)]], [accepted])
    taps = state.read_taps(window, 4, torch.float32)
    assert taps[0, 0].tolist() == [accepted - 1, accepted, accepted + 1]
    state.write_taps(window, taps, 100 + torch.arange(float(q)).view(1, q, 1))
    new = [accepted, accepted + 1, *range(100, 100 + q)]
    assert state.conv[4, 0].tolist() == new + list(range(10))[q + 2 :]
    assert (state.conv[[0, 1, 2, 3, *range(5, 10)]] == 0).all()


def test_a_window_longer_than_the_state_is_refused() -> None:
    state = KdaState(torch.zeros(4, 1, 1, 1), torch.zeros(4, 1, 4))
    with pytest.raises(ValueError, match="needs 5 inputs per channel; the state has 4"):
        state.write_taps(slots(3, [[1, 2, 3]], [1]), torch.zeros(1, 1, 3), torch.zeros(1, 3, 1))


@pytest.mark.parametrize("size", [1, 2, 3, 8])
@pytest.mark.parametrize("interleave", [1, 2, 5])
def test_ranks_hold_disjoint_tokens_in_order(size: int, interleave: int) -> None:
    """Against dealing the tokens out one run at a time."""
    hands: list[list[int]] = [[] for _ in range(size)]
    for token in range(64):
        hands[token // interleave % size].append(token)
    cache = KvCache(torch.zeros(1, 1, 1), interleave=interleave)
    for rank in range(size):
        for total in range(65):
            held = cache.held(total, Rank(rank, size))
            assert held == sum(token < total for token in hands[rank])


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("interleave", [1, 2])
def test_an_appended_row_is_found_where_it_is_read(size: int, interleave: int) -> None:
    """One token at a time into shuffled pages of 4; each rank reads back exactly its own."""
    for rank in range(size):
        who = Rank(rank, size)
        cache = KvCache(torch.full((6, 4, 2), -1.0), interleave=interleave)
        table = torch.tensor([[5, 0, 3, 1, 2, 4]])
        for token in range(18):
            row = torch.full((1, 2), float(token))
            cache.append(row, PageWindow(1, table, torch.tensor([token + 1])), who)
        mine = [t for t in range(18) if t // interleave % size == rank]
        assert cache.read(table[0], len(mine), torch.float32)[:, 0].tolist() == mine
        assert (cache.pages == -1).all(2).sum() == 24 - len(mine)


@pytest.mark.parametrize("length", [3, 4, 5, 7, 8, 9])
def test_rejected_rows_are_overwritten_across_a_page_boundary(length: int) -> None:
    cache, table = KvCache(torch.zeros(4, 4, 1)), torch.tensor([[2, 0, 3, 1]])
    cache.append(
        torch.full((3, 1), 9.0), PageWindow(3, table, torch.tensor([length])), SingleRank()
    )
    after = PageWindow(3, table, torch.tensor([length + 1]))  # one of three was accepted
    cache.append(torch.tensor([[1.0], [2.0], [3.0]]), after, SingleRank())
    got = cache.read(table[0], length + 1, torch.float32)[:, 0].tolist()
    assert got == [0.0] * (length - 3) + [9.0, 1.0, 2.0, 3.0]


def e4m3(byte: int) -> float:
    """The value of an FP8 byte from its bits s eeee mmm; 0x7F and 0xFF are NaN."""
    exponent, mantissa = (byte >> 3) & 15, byte & 7
    if exponent == 15 and mantissa == 7:
        return float("nan")
    size = mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10)
    return -size if byte & 128 else size


def nearest(x: float) -> int:
    """The byte of the nearest finite value; at a midpoint the even one; saturating."""
    side = 128 if torch.tensor(x).signbit() else 0
    return side + min(range(127), key=lambda b: (abs(e4m3(b) - abs(x)), b & 1))


def test_fp8_rounds_to_nearest_even_and_saturates() -> None:
    sizes = [0.0, 2.0**-10, 3 * 2.0**-10, 0.0147, 0.99, 1.0625, 1.1875, 17.0, 19.0, 447.0, 464.0]
    sizes += [465.0, 1e9, float("inf"), 2.0**-11, 0.1, 3.14159]
    values = torch.tensor(sizes + [-x for x in sizes])
    finite = values.clamp(-1e9, 1e9).tolist()
    assert to_fp8(values).view(torch.uint8).tolist() == [nearest(x) for x in finite]


def test_a_nan_becomes_the_one_byte_that_is_no_sentinel() -> None:
    nans = torch.tensor([float("nan"), -float("nan")])
    nans = torch.cat([nans, torch.tensor([-1], dtype=torch.int32).view(torch.float32)])
    assert to_fp8(nans).view(torch.uint8).tolist() == [0x7F] * 3


def test_an_fp8_cache_divides_by_its_scale_and_a_bf16_cache_has_none() -> None:
    cache = KvCache(torch.zeros(1, 1, 2, dtype=FP8), k_scale=0.25)
    window = PageWindow(1, torch.tensor([[0]]), torch.tensor([1]))
    cache.append(torch.tensor([[3.0, 1000.0]]), window, SingleRank())
    assert cache.read(torch.tensor([0]), 1, torch.float32).tolist() == [[12.0, 448.0]]
    with pytest.raises(ValueError, match="has no scales"):
        KvCache(torch.zeros(1, 1, 2, dtype=torch.bfloat16), k_scale=0.25)


def test_caches_have_the_shared_layouts_and_the_policy_s_dtypes() -> None:
    c, shape = odd(), CacheShape(slots=5, pages=6, page_size=4, draft=3)
    served = allocate(c, model_weights(c, 0), stock(), shape)
    for index, layer in enumerate(served.layers):
        if c.is_kda(index):
            assert isinstance(layer, KdaState)
            assert (layer.recurrent.shape, layer.recurrent.dtype) == ((5, 3, 8, 8), torch.float32)
            assert (layer.conv.shape, layer.conv.dtype) == ((5, 72, 6), torch.bfloat16)
        else:
            assert isinstance(layer, KvCache)
            assert (layer.pages.shape, layer.pages.dtype) == ((6, 4, 16), torch.bfloat16)
    form = KvCache(torch.empty(0, dtype=FP8), 0.5, 0.25, interleave=2)
    quantised = allocate(c, model_weights(c, 0), exact(torch.float64), shape, form)
    assert isinstance(quantised.layers[0], KdaState)
    assert quantised.layers[0].recurrent.dtype == torch.float64
    cache = quantised.layers[3]
    assert isinstance(cache, KvCache)
    assert (cache.pages.dtype, cache.q_scale, cache.k_scale, cache.interleave) == (
        FP8,
        0.5,
        0.25,
        2,
    )


def test_a_reset_slot_has_no_past_and_its_neighbours_keep_theirs() -> None:
    caches = Caches((KdaState(torch.ones(3, 1, 1, 1), torch.ones(3, 1, 4)), KvCache(torch.ones(1))))
    caches.reset(1)
    state = caches.layers[0]
    assert isinstance(state, KdaState)
    assert state.recurrent[:, 0, 0, 0].tolist() == [1, 0, 1]
    assert state.conv.sum((1, 2)).tolist() == [4, 0, 4]
