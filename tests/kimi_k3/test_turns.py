# SPDX-License-Identifier: Apache-2.0
"""Turns, waits and the simulated clock, as the ranks of a group see them."""

import math
import random
import threading
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kimi_k3.ranks import Rank, RankError, SingleRank, Waiter, run_ranks

X = torch.ones(2)
NEVER: Callable[[], bool] = lambda: False  # noqa: E731


def test_a_wait_ends_when_another_rank_has_done_it_and_takes_no_time() -> None:
    box: list[int] = []

    def rank(who: Rank) -> tuple[bool, float]:
        if who.rank == 0:
            return who.wait_until(lambda: len(box) == 3, 1.0), who.now()
        for _ in range(3):
            who.sleep(0)
            box.append(who.rank)
        return True, who.now()

    assert run_ranks(2, rank) == [(True, 0.0)] * 2


def test_a_wait_in_vain_ends_at_its_deadline() -> None:
    def rank(who: Rank) -> list[tuple[bool, float]]:
        first = (who.wait_until(NEVER, 1.0 + who.rank), who.now())
        return [first, (who.wait_until(NEVER, who.now() + 0.25), who.now())]

    assert run_ranks(3, rank) == [[(False, 1.0 + r), (False, 1.25 + r)] for r in range(3)]


def test_what_holds_at_the_deadline_holds() -> None:
    def rank(who: Rank) -> bool:
        return who.wait_until(lambda: who.now() >= 2.0, 2.0)

    assert run_ranks(1, rank) == [True]


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_time_stands_still_while_any_rank_can_go_on(seed: int | None) -> None:
    def rank(who: Rank) -> float:
        if who.rank:
            for _ in range(200):
                who.sleep(0)
            return who.now()
        who.sleep(0.001)
        return who.now()

    assert run_ranks(3, rank, seed=seed) == [0.001, 0.0, 0.0]


@settings(max_examples=30, deadline=None)
@given(
    naps=st.lists(st.lists(st.integers(0, 5), max_size=5), min_size=1, max_size=5),
    seed=st.none() | st.integers(0, 99),
)
def test_sleepers_wake_in_the_order_of_time(naps: list[list[int]], seed: int | None) -> None:
    woken: list[float] = []

    def rank(who: Rank) -> float:
        for nap in naps[who.rank]:
            before = who.now()
            who.sleep(nap)
            assert who.now() == before + nap
            woken.append(who.now())
        return who.now()

    assert run_ranks(len(naps), rank, seed=seed) == [float(sum(nap)) for nap in naps]
    assert woken == sorted(woken)


@pytest.mark.parametrize("ending", ["returns", "raises"])
def test_a_rank_that_has_ended_wakes_nobody(ending: str) -> None:
    waited: dict[int, tuple[bool, float]] = {}
    box: list[int] = []

    def rank(who: Rank) -> None:
        if who.rank == 0:
            if ending == "raises":
                raise KeyError(0)
            return
        waited[who.rank] = (who.wait_until(lambda: bool(box), 3.0 * who.rank), who.now())

    if ending == "raises":
        with pytest.raises(RankError, match="rank 0 raised KeyError: 0; ranks 1, 2 returned"):
            run_ranks(3, rank)
    else:
        run_ranks(3, rank)
    assert waited == {1: (False, 3.0), 2: (False, 6.0)}


def test_a_collective_waits_for_ranks_that_wait() -> None:
    def rank(who: Rank) -> tuple[float, float]:
        if who.rank == 1:
            who.sleep(0.5)
        total = who.all_reduce(X * (1 + who.rank))
        return float(total[0]), who.now()

    assert run_ranks(3, rank) == [(6.0, 0.5)] * 3


def test_a_rank_that_waits_for_one_in_a_collective_reaches_its_deadline() -> None:
    box: list[int] = []

    def rank(who: Rank) -> tuple[bool, float]:
        came = who.rank == 0 and who.wait_until(lambda: bool(box), 2.0)
        total = who.all_reduce(X)
        box.append(who.rank)
        return came, float(total[0])

    assert run_ranks(3, rank) == [(False, 3.0)] * 3


def test_a_disagreement_is_told_after_the_waits_are_over() -> None:
    seen: list[float] = []

    def rank(who: Rank) -> None:
        if who.rank == 2:
            who.sleep(7)
            seen.append(who.now())
            return
        who.all_reduce(X)

    with pytest.raises(RankError, match="rank 2 returned; ranks 0, 1 called all_reduce"):
        run_ranks(3, rank)
    assert seen == [7.0]


def order(seed: int | None, size: int = 4, turns: int = 5) -> list[int]:
    log: list[int] = []

    def rank(who: Rank) -> None:
        for _ in range(turns):
            log.append(who.rank)
            who.sleep(0)

    run_ranks(size, rank, seed=seed)
    return log


def test_without_a_seed_ranks_take_turns() -> None:
    assert order(None) == [0, 1, 2, 3] * 5


def test_a_seed_gives_one_order_and_another_seed_another() -> None:
    orders = [order(seed) for seed in range(5)]
    assert [order(seed) for seed in range(5)] == orders
    assert len({tuple(o) for o in orders}) == 5
    assert all(sorted(o) == sorted(orders[0]) for o in orders)


def test_of_waits_with_one_deadline_the_one_that_began_first_ends_first() -> None:
    log: list[int] = []

    def rank(who: Rank) -> None:
        for _ in range(3 - who.rank):  # rank 2 begins first
            who.sleep(0)
        who.wait_until(NEVER, 1.0)
        log.append(who.rank)

    run_ranks(3, rank)
    assert log == [2, 1, 0]


def test_an_error_in_a_condition_ends_every_rank() -> None:
    told: dict[int, str] = {}

    def rank(who: Rank) -> None:
        try:
            who.wait_until((lambda: 1 // who.rank > 0) if who.rank == 0 else NEVER, 9.0)
        except RankError as error:
            told[who.rank] = str(error)

    before = threading.active_count()
    with pytest.raises(ZeroDivisionError):
        run_ranks(3, rank)
    assert told == dict.fromkeys(range(3), "stopped by ZeroDivisionError")
    assert threading.active_count() == before


@pytest.mark.parametrize("deadline", [math.inf, -math.inf, math.nan])
def test_a_deadline_is_a_time(deadline: float) -> None:
    def wait(who: Waiter) -> None:
        with pytest.raises(ValueError, match="want a finite deadline"):
            who.wait_until(NEVER, deadline)

    run_ranks(2, wait)
    wait(SingleRank())


def test_a_sleep_does_not_end_before_it_began() -> None:
    def nap(who: Waiter) -> None:
        with pytest.raises(ValueError, match=r"-0\.5 s from now; want at least 0"):
            who.sleep(-0.5)

    run_ranks(2, nap)
    nap(SingleRank())


def test_a_wait_serves_only_its_own_thread_and_only_while_its_group_runs() -> None:
    with pytest.raises(RankError, match="of rank 0 was used in another thread"):
        run_ranks(2, lambda who: run_ranks(2, lambda _: who.sleep(1)))
    kept, _ = run_ranks(2, lambda who: who)
    with pytest.raises(RankError, match="another thread"):
        kept.wait_until(NEVER, 1.0)


def test_a_rank_that_computes_too_long_is_late_after_the_others_waited() -> None:
    release = threading.Event()

    def stuck(who: Rank) -> None:
        if who.rank == 0:
            release.wait()
        else:
            who.sleep(1)

    with pytest.raises(RankError, match="rank 0 came to no collective in time; rank 1 returned"):
        run_ranks(2, stuck, turn_limit_s=0.2)
    release.set()


def test_the_single_rank_waits_alone() -> None:
    alone = SingleRank()
    assert alone.wait_until(lambda: True, 5.0)
    assert alone.now() == 0.0
    assert not alone.wait_until(NEVER, 5.0)
    assert alone.now() == 5.0
    alone.sleep(1.5)
    assert not alone.wait_until(NEVER, 1.0)
    assert alone.now() == 6.5
    assert SingleRank().now() == 0.0


def test_the_single_rank_is_a_group_of_one() -> None:
    draw = random.Random(3)
    moves = [(draw.random() < 0.5, draw.uniform(0, 3)) for _ in range(20)]

    def play(who: Waiter) -> list[tuple[bool, float]]:
        return [(who.wait_until(lambda h=holds: h, at), who.now()) for holds, at in moves]  # type: ignore[misc]

    assert run_ranks(1, play) == [play(SingleRank())]
