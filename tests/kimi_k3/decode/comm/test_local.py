# SPDX-License-Identifier: Apache-2.0
"""The failure contract: whatever goes wrong, every living rank raises one record, in time."""

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kimi_k3.decode.comm.faults import Delay, Drop, FallBack, Fault, Kill, Place
from kimi_k3.decode.comm.health import DecodeFailure, HealthRecord
from kimi_k3.decode.comm.interface import Site
from kimi_k3.decode.comm.local import Ended, LocalCommunicator, LocalGroup, Skew
from kimi_k3.decode.comm.mailbox import COUNTER_WRAP
from kimi_k3.decode.comm.words import Sentinel
from kimi_k3.ranks import Rank, RankError, run_ranks
from tests.kimi_k3.decode.comm.builders import (
    LIMIT_S,
    ROWS,
    SIZE,
    STEP,
    Program,
    exchanges,
    same_bits,
)

X = torch.ones(4, 5)
ROWS_EACH = (4, 0, ROWS, 4)
"""Rows of the steps that are served; the second falls back on all ranks, as it should."""

PLACES = [(e.site, [x.site for x in STEP[:i]].count(e.site)) for i, e in enumerate(STEP)] + [
    (Site.END, 0)
]
ORDER = {place: number for number, place in enumerate(PLACES)}


class Server:
    """Serves steps on every rank; what a step returned is released only after `end_step`."""

    def __init__(self, faults: Sequence[Fault], skew: Skew | None = None, start: int = 0) -> None:
        self.group = LocalGroup(exchanges(start=start), faults, skew)
        self.program = Program(ROWS_EACH)
        self.released: dict[int, list[int]] = defaultdict(list)

    def run(self) -> list[Ended[None]]:
        before = threading.active_count()
        ended = self.group.run(self.serve)
        assert threading.active_count() == before
        return ended

    def serve(self, comm: LocalCommunicator) -> None:
        want = iter(self.program.plain(SIZE, Sentinel.ALL_ONES)[comm.rank])
        step = self.group.exchanges.start
        try:
            for number, rows in enumerate(self.program.rows):
                xs = self.program.inputs(comm.rank, number, Sentinel.ALL_ONES)
                if rows:
                    step = (step + 1) % COUNTER_WRAP
                    comm.begin_step(rows)
                got = [
                    e.of(comm.at(e.site) if rows else comm.stock, x)
                    for e, x in zip(STEP, xs, strict=True)
                ]
                if rows:
                    comm.end_step()
                    self.released[comm.rank].append(step)
                assert all(same_bits(a, next(want)) for a in got)
        except DecodeFailure as failure:
            refuses_everything(comm, failure)
            raise


def refuses_everything(comm: LocalCommunicator, failure: DecodeFailure) -> None:
    """Every use after a failure raises the same words, and takes no time."""
    at = comm.now()
    uses: list[Callable[[], object]] = [
        lambda: comm.begin_step(1),
        lambda: comm.all_reduce(X),
        lambda: comm.at(Site.DCP).all_gather(X, 0),
        lambda: comm.stock.all_reduce(X),
        comm.end_step,
    ]
    for use in uses:
        with pytest.raises(DecodeFailure) as again:
            use()
        assert again.value.record == failure.record
        assert str(again.value) == str(failure)
    assert comm.failed
    assert comm.now() == at


def the_one_record(ended: Sequence[Ended[None]]) -> HealthRecord:
    records = {e.failure.record for e in ended if e.failure is not None}
    assert [e.failure is None for e in ended] == [e.killed for e in ended]
    assert len(records) == 1
    return records.pop()


FAULTS: dict[str, Callable[[int, Place], Fault]] = {
    "killed before it publishes": Kill,
    "killed with one peer served": lambda rank, at: Kill(rank, at, 1),
    "killed with all peers served": lambda rank, at: Kill(rank, at, SIZE),
    "delayed past the limit": lambda rank, at: Delay(rank, at, 3 * LIMIT_S),
    "lost for all": Drop,
    "lost for one peer": lambda rank, at: Drop(rank, at, frozenset({(rank + 1) % SIZE})),
    "first word lost for one": lambda rank, at: Drop(rank, at, frozenset({(rank + 2) % SIZE}), 0),
    "last word lost for all": lambda rank, at: Drop(rank, at, None, -1),
    "fallen back": lambda rank, at: FallBack(rank, at.step),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("site", "ordinal"), PLACES)
def test_every_living_rank_raises_one_record_in_time_and_releases_nothing_more(
    fault: str, site: Site, ordinal: int
) -> None:
    for rank in range(SIZE):
        place = Place(2, site, ordinal)
        planted = FAULTS[fault](rank, place)
        server = Server([planted])
        ended = server.run()
        record = the_one_record(ended)
        assert record.slot == rank or isinstance(planted, FallBack)
        for who, e in enumerate(ended):
            sleeper = isinstance(planted, Delay) and who == rank
            assert e.time_s == pytest.approx(3 * LIMIT_S if sleeper else (not e.killed) * LIMIT_S)
            released = server.released[who]
            assert released == list(range(1, 1 + len(released)))
            if record.site is not Site.END:
                assert record.step not in released
        assert expected_place(planted, record, place)


def expected_place(planted: Fault, record: HealthRecord, place: Place) -> bool:
    """Whether the record names where the fault was planted, or the exchange after it."""
    found = (record.step, ORDER[record.site, record.ordinal])
    here = (place.step, ORDER[place.site, place.ordinal])
    if isinstance(planted, FallBack):
        return found == (place.step, 0)
    if isinstance(planted, Kill) and planted.stored == SIZE:
        after = (here[0], here[1] + 1) if here[1] + 1 < len(PLACES) else (here[0] + 1, 0)
        return found == after
    return found == here


def test_the_record_counts_the_words_that_came() -> None:
    place = Place(1, Site.EMBED)
    # 4 rows of 5 BF16 numbers are 4 x 3 words.
    assert the_one_record(Server([Drop(1, place, None, 7)]).run()) == HealthRecord(
        0, Site.EMBED, 0, 1, slot=1, expected=12, seen=11
    )
    assert the_one_record(Server([Kill(0, place)]).run()) == HealthRecord(
        1, Site.EMBED, 0, 1, slot=0, expected=12, seen=0
    )


def test_all_ranks_but_one_fall_back_and_all_raise_its_record() -> None:
    for planner in range(SIZE):
        others = [FallBack(rank, 2) for rank in range(SIZE) if rank != planner]
        assert the_one_record(Server(others).run()).rank == planner


def test_a_step_in_which_all_ranks_fall_back_is_a_stock_step() -> None:
    server = Server([FallBack(rank, 2) for rank in range(SIZE)])
    # The counter stays at 1, so step 2 is met again in place of every later one.
    assert [e.failure for e in server.run()] == [None] * SIZE
    assert all(memory.counter.step == 1 for memory in server.group.memories)


def test_a_rank_lost_in_a_stock_step_is_the_stock_collectives_error() -> None:
    def lost(comm: LocalCommunicator) -> None:
        if comm.rank:
            comm.stock.all_reduce(X)

    with pytest.raises(RankError, match="rank 0 returned; ranks 1, 2 called all_reduce"):
        LocalGroup(exchanges()).run(lost)


places = st.builds(lambda step, at: Place(step, *at), st.integers(1, 4), st.sampled_from(PLACES))
ranks = st.integers(0, SIZE - 1)
losses = st.one_of(
    st.builds(Kill, ranks, places, st.integers(0, SIZE)),
    st.builds(Delay, ranks, places, st.sampled_from([0.5, 0.9, 1.5, 4.0]).map(LIMIT_S.__mul__)),
    st.builds(
        Drop, ranks, places, st.none() | st.frozensets(ranks, min_size=1), st.none() | st.just(0)
    ),
)


@settings(max_examples=60, deadline=None)
@given(
    faults=st.lists(losses, max_size=2),
    fallback=st.none() | st.builds(FallBack, ranks, st.integers(1, 4)),
    seed=st.none() | st.integers(0, 2**32),
    pieces=st.integers(0, 2),
    start=st.sampled_from([0, COUNTER_WRAP - 2]),
)
def test_any_faults_end_in_one_record_or_change_nothing(
    faults: list[Fault], fallback: FallBack | None, seed: int | None, pieces: int, start: int
) -> None:
    planted = [*faults[:1], fallback] if fallback else faults
    server = Server([at_step(f, start) for f in planted], Skew(seed, pieces), start)
    ended = server.run()
    living = [e for e in ended if not e.killed]
    asleep = sum(f.seconds for f in planted if isinstance(f, Delay))
    if all(e.failure is None for e in ended) and living:
        assert all(server.released[who] for who, e in enumerate(ended) if not e.killed)
        return
    record = the_one_record(ended) if living else None
    for who, e in enumerate(ended):
        assert e.time_s <= LIMIT_S + asleep + 1e-9
        if record and record.site is not Site.END:
            assert record.step not in server.released[who]


def at_step(fault: Fault, start: int) -> Fault:
    """The fault, `start` steps later."""
    if isinstance(fault, FallBack):
        return FallBack(fault.rank, (fault.step + start) % COUNTER_WRAP)
    step = (fault.place.step + start) % COUNTER_WRAP
    place = Place(step, fault.place.site, fault.place.ordinal)
    if isinstance(fault, Kill):
        return Kill(fault.rank, place, fault.stored)
    if isinstance(fault, Delay):
        return Delay(fault.rank, place, fault.seconds)
    return Drop(fault.rank, place, fault.peers, fault.word)


def test_a_rebuilt_group_works() -> None:
    the_one_record(Server([Kill(1, Place(1, Site.O_PROJ))]).run())
    assert [e.failure for e in Server([]).run()] == [None] * SIZE


def test_a_failing_step_goes_on_with_zeros_and_without_waiting() -> None:
    seen: list[tuple[bool, float, bool]] = []

    def one_step(comm: LocalCommunicator) -> None:
        comm.begin_step(4)
        for e in STEP:
            y = e.of(comm.at(e.site), torch.ones(4, e.columns, dtype=e.dtype))
            if comm.rank == 0:
                seen.append((comm.failed, comm.now(), bool(y.any())))
        comm.end_step()

    lost = LocalGroup(exchanges(), [Kill(2, Place(1, Site.LATENT))])
    the_one_record(lost.run(one_step))
    assert seen == [(False, 0, True)] * 2 + [(True, LIMIT_S, False)] * 6


def test_after_a_failure_publications_still_arrive_whole_and_sanitised() -> None:
    def negative_zeros(comm: LocalCommunicator) -> None:
        comm.begin_step(4)
        for e in STEP:
            e.of(comm.at(e.site), torch.full((4, e.columns), -0.0, dtype=e.dtype))
        comm.end_step()

    lost = LocalGroup(exchanges(Sentinel.NEGATIVE_ZERO), [Kill(2, Place(1, Site.EMBED))])
    the_one_record(lost.run(negative_zeros))
    for box in lost.memories[2].mailboxes.values():  # rank 2 is gone and re-arms nothing
        used = {box.parity(1, ordinal) for ordinal in range(box.spec.per_step)}
        for parity in used:
            assert box.came(box.load(parity, 4, 1))[:2].all()


def test_the_group_has_the_size_that_was_agreed_on() -> None:
    def join(rank: Rank) -> None:
        LocalGroup(exchanges()).communicator(rank)

    with pytest.raises(ValueError, match="a group of 2 ranks; want 3"):
        run_ranks(2, join)
