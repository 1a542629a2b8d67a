# SPDX-License-Identifier: Apache-2.0
"""The protocol under skew: results equal plain collectives, and planted bugs show."""

import random
from typing import ClassVar

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kimi_k3.decode.comm.faults import Delay, Place
from kimi_k3.decode.comm.interface import Site
from kimi_k3.decode.comm.local import LocalGroup, Skew
from kimi_k3.decode.comm.mailbox import COUNTER_WRAP, Mailbox, MailboxSpec, Rearm, StepCounter
from kimi_k3.decode.comm.words import Sentinel, to_words
from tests.kimi_k3.decode.comm.builders import (
    LIMIT_S,
    ROWS,
    SIZE,
    STEP,
    Exchange,
    Program,
    check,
    exchanges,
    same_bits,
)

WRAPS = (0, 1, COUNTER_WRAP - 3, COUNTER_WRAP - 2, COUNTER_WRAP - 1)


@settings(max_examples=25, deadline=None)
@given(
    rows=st.lists(st.integers(0, ROWS), min_size=1, max_size=8),
    seed=st.integers(0, 2**32),
    pieces=st.integers(0, 3),
    sentinel=st.sampled_from(Sentinel),
    start=st.sampled_from(WRAPS),
)
def test_results_are_the_bits_of_plain_collectives_whatever_the_skew_and_the_rows(
    rows: list[int], seed: int, pieces: int, sentinel: Sentinel, start: int
) -> None:
    check(LocalGroup, Program(tuple(rows)), Skew(seed, pieces), sentinel, start)


def test_thousands_of_exchanges_with_changing_rows_and_fallbacks_stay_right() -> None:
    rows = random.Random(5)
    program = Program(tuple(rows.choice([0, 1, 1, 2, 3, ROWS, ROWS]) for _ in range(300)))
    check(LocalGroup, program, Skew(3), start=COUNTER_WRAP - 100)


def test_results_do_not_depend_on_the_order_of_turns() -> None:
    program = Program((ROWS, 1, ROWS))
    runs = [
        LocalGroup(exchanges(), skew=Skew(seed, 2)).run(program.play) for seed in (None, 1, 2, 3)
    ]
    for run in runs[1:]:
        for mine, first in zip(run, runs[0], strict=True):
            assert mine.value is not None
            assert first.value is not None
            assert all(map(same_bits, mine.value, first.value))


@pytest.mark.parametrize("seed", range(4))
def test_delays_below_the_limit_change_nothing_but_the_time(seed: int) -> None:
    draw = random.Random(seed)
    program = Program((4, ROWS, 1))
    sites = [(e.site, [x.site for x in STEP[:i]].count(e.site)) for i, e in enumerate(STEP)]
    delays = [
        Delay(draw.randrange(SIZE), Place(step, site, ordinal), 0.9 * LIMIT_S)
        for step in (1, 2, 3)
        for site, ordinal in [*draw.sample(sites, 3), (Site.END, 0)]
    ]
    ended = LocalGroup(exchanges(), delays, Skew(seed)).run(program.play)
    for mine, want in zip(ended, program.plain(SIZE, Sentinel.ALL_ONES), strict=True):
        assert mine.value is not None
        assert all(map(same_bits, mine.value, want))
        assert mine.time_s == pytest.approx(len(delays) * 0.9 * LIMIT_S)


@pytest.mark.parametrize("sentinel", Sentinel)
def test_after_the_last_step_only_the_deferred_slots_are_not_armed(sentinel: Sentinel) -> None:
    group = check(LocalGroup, Program((3, ROWS, 2)), Skew(7, 2), sentinel)
    for memory in group.memories:
        assert memory.counter.record.tolist() == [3, 2, ROWS]
        for box in memory.mailboxes.values():
            unarmed = (box.slots != box.spec.sentinel.value).flatten(1).any(dim=1)
            last = box.parity(3, box.spec.per_step - 1)
            deferred = box.spec.rearm is Rearm.AT_NEXT
            assert unarmed.nonzero().flatten().tolist() == ([last] if deferred else [])


def test_fallback_steps_leave_counter_and_mailboxes_alone() -> None:
    with_fallbacks = check(LocalGroup, Program((0, 4, 0, 0, 2, 0)), Skew(1))
    without = check(LocalGroup, Program((4, 2)), Skew(1))
    for one, other in zip(with_fallbacks.memories, without.memories, strict=True):
        assert torch.equal(one.counter.record, other.counter.record)
        for site, box in one.mailboxes.items():
            twin, sentinel = other.mailboxes[site], box.spec.sentinel.value
            assert torch.equal(box.slots != sentinel, twin.slots != sentinel)


@given(
    start=st.one_of(st.sampled_from(WRAPS), st.integers(0, COUNTER_WRAP - 1)),
    per_step=st.integers(1, 7),
    rearm=st.sampled_from(Rearm),
)
def test_parities_follow_each_other_over_steps_and_over_the_wrap(
    start: int, per_step: int, rearm: Rearm
) -> None:
    box = Mailbox(MailboxSpec(Site.LATENT, 1, per_step, rearm), 1, 1)
    counter = StepCounter(start)
    seen = []
    for _ in range(4):
        counter.advance(1)
        seen += [box.parity(counter.step, ordinal) for ordinal in range(per_step)]
    assert seen == [(seen[0] + k) % rearm.value for k in range(len(seen))]
    assert counter.step == (start + 4) % COUNTER_WRAP


class HostBakedEpoch(Mailbox):
    """The parity of the captured step, whatever the counter says."""

    def parity(self, step: int, ordinal: int) -> int:
        return super().parity(1, ordinal)


class CurrentRows(Mailbox):
    """Re-arms as many rows as this step has, though the step before wrote the slot."""

    def rearm(self, counter: StepCounter, ordinal: int) -> None:
        writer = StepCounter()
        writer.record[:] = counter.record
        writer.record[2] = counter.rows
        super().rearm(writer, ordinal)


class OneParity(Mailbox):
    """Every exchange in the same slots."""

    def parity(self, step: int, ordinal: int) -> int:
        return 0


class TwoParitiesDeferred(Mailbox):
    """Two parities although the re-arm waits for the next exchange."""

    def parity(self, step: int, ordinal: int) -> int:
        return (
            super().parity(step, ordinal)
            if len(self.slots) == 2
            else ((step * self.spec.per_step + ordinal) % 2)
        )


class NotSanitised(Mailbox):
    """Publishes the payload as it is."""

    def words_of(self, x: Tensor) -> Tensor:
        return to_words(x)


class NoRearm(Mailbox):
    """Never re-arms."""

    def rearm(self, counter: StepCounter, ordinal: int) -> None:
        pass


class FirstWordOnly(Mailbox):
    """Takes a slot as written when its first word is."""

    def came(self, loaded: Tensor) -> Tensor:
        return super().came(loaded)[:, :1, :1]


class FirstRowOnly(Mailbox):
    """Takes a slot as written when its first row is."""

    def came(self, loaded: Tensor) -> Tensor:
        return super().came(loaded)[:, :1]


class LastNotPolled(Mailbox):
    """Polls all slots but the last source's."""

    def came(self, loaded: Tensor) -> Tensor:
        return super().came(loaded)[:-1]


class LoadedAgain(Mailbox):
    """Uses what the slots hold later, not the words that were polled."""

    def load(self, parity: int, rows: int, words: int) -> Tensor:
        return self.slots[parity, :, :rows, :words]


LARGE_SMALL_LARGE = Program((ROWS, 1, ROWS, 0, 2, ROWS))
AT_ONCE_ONLY = Program((ROWS, 1, ROWS), (Exchange(Site.O_PROJ, "all_reduce", 4),) * 3)
DEFERRED_ONLY = Program((ROWS, 1) * 4, (Exchange(Site.LATENT, "all_reduce", 4),) * 2)

PLANTED: dict[str, tuple[type[Mailbox], Program, Sentinel]] = {
    "an epoch baked by the host": (HostBakedEpoch, DEFERRED_ONLY, Sentinel.ALL_ONES),
    "the current rows re-armed": (CurrentRows, DEFERRED_ONLY, Sentinel.ALL_ONES),
    "one parity": (OneParity, AT_ONCE_ONLY, Sentinel.ALL_ONES),
    "two parities with deferred re-arm": (TwoParitiesDeferred, DEFERRED_ONLY, Sentinel.ALL_ONES),
    "negative zeros as they are": (NotSanitised, LARGE_SMALL_LARGE, Sentinel.NEGATIVE_ZERO),
    "NaNs as they are": (NotSanitised, LARGE_SMALL_LARGE, Sentinel.ALL_ONES),
    "no re-arm": (NoRearm, AT_ONCE_ONLY, Sentinel.ALL_ONES),
    "the first word alone checked": (FirstWordOnly, AT_ONCE_ONLY, Sentinel.ALL_ONES),
    "the first row alone checked": (FirstRowOnly, AT_ONCE_ONLY, Sentinel.ALL_ONES),
    "one source not polled": (LastNotPolled, AT_ONCE_ONLY, Sentinel.ALL_ONES),
    "values loaded after the poll": (LoadedAgain, AT_ONCE_ONLY, Sentinel.ALL_ONES),
}
SKEWS = [Skew(seed, 2) for seed in range(6)]


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_shows_where_the_protocol_passes(bug: str) -> None:
    broken, program, sentinel = PLANTED[bug]

    class Broken(LocalGroup):
        mailbox: ClassVar[type[Mailbox]] = broken

    shown = 0
    for skew in SKEWS:
        check(LocalGroup, program, skew, sentinel)
        try:
            check(Broken, program, skew, sentinel)
        except AssertionError:
            shown += 1
    assert shown


def test_a_counter_that_wraps_elsewhere_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    class NearWrap(LocalGroup):
        def __init__(self, *args: object, **kwargs: object) -> None:
            super().__init__(*args, **kwargs)  # type: ignore[arg-type]
            for memory in self.memories:
                memory.counter.record[0] = 2**32 - 2

    monkeypatch.setattr("kimi_k3.decode.comm.mailbox.COUNTER_WRAP", 2**32)
    one = Program((4,) * 6, (Exchange(Site.LATENT, "all_reduce", 4),))
    shown = 0
    for skew in SKEWS:
        try:
            check(NearWrap, one, skew)
        except AssertionError:
            shown += 1
    assert shown


@pytest.mark.parametrize(("words", "per_step"), [(0, 1), (1, 0)])
def test_a_mailbox_carries_something(words: int, per_step: int) -> None:
    with pytest.raises(ValueError, match="mailbox latent: "):
        MailboxSpec(Site.LATENT, words, per_step)
