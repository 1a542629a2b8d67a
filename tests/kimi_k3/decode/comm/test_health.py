# SPDX-License-Identifier: Apache-2.0
"""Health records: the first claim stands, and one record wins on all ranks."""

import pytest

from kimi_k3.decode.comm.health import DecodeFailure, Health, HealthRecord, spread
from kimi_k3.decode.comm.interface import Site
from kimi_k3.ranks import run_ranks

FIRST = HealthRecord(2, Site.LATENT, 4, 17, 1, expected=8, seen=5)
SECOND = HealthRecord(0, Site.END, 0, 17, 1, expected=1, seen=0)


def nothing() -> None:
    """No other rank runs."""


@pytest.mark.parametrize("site", Site)
def test_a_claimed_record_is_read_back_whole_and_stands(site: Site) -> None:
    health = Health()
    record = HealthRecord(1, site, 2, 3 * 2**30 - 1, 4, 2**31, 6)
    assert health.claim(record) == record
    assert health.claim(FIRST) == record
    assert health.record == record


def test_an_empty_record_is_no_record() -> None:
    with pytest.raises(ValueError, match="the health record is empty"):
        _ = Health().record


def test_fail_is_sticky_and_needs_no_record() -> None:
    health = Health()
    assert not health.failed
    health.set_failed()
    health.claim(FIRST)
    assert health.failed


def test_every_rank_that_can_be_reached_is_told() -> None:
    ranks = [Health() for _ in range(4)]
    ranks[1].reachable = False
    spread(FIRST, ranks, nothing)
    assert [health.failed for health in ranks] == [True, False, True, True]
    assert {ranks[r].record for r in (0, 2, 3)} == {FIRST}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("lost", [None, 0, 1])
def test_of_two_ranks_that_time_out_together_one_record_wins_everywhere(
    lost: int | None, seed: int
) -> None:
    ranks = [Health() for _ in range(4)]
    for rank, health in enumerate(ranks):
        health.reachable = rank != lost
    mine = (FIRST, SECOND)
    run_ranks(2, lambda who: spread(mine[who.rank], ranks, lambda: who.sleep(0)), seed=seed)
    assert len({health.record for health in ranks if health.reachable}) == 1
    assert all(health.failed for health in ranks if health.reachable)


def test_which_of_two_records_wins_is_a_matter_of_order() -> None:
    winners = set()
    for seed in range(12):
        ranks = [Health() for _ in range(4)]
        mine = (FIRST, SECOND)
        run_ranks(2, lambda who: spread(mine[who.rank], ranks, lambda: who.sleep(0)), seed=seed)  # noqa: B023
        winners.add(ranks[3].record)
    assert winners == {FIRST, SECOND}


def test_the_failure_prints_its_record() -> None:
    assert str(DecodeFailure(FIRST)) == (
        "rank 2 waited in vain at latent 4 of step 17: 5 of 8 words of rank 1 came; "
        "no rank goes on until all are rebuilt"
    )
