# SPDX-License-Identifier: Apache-2.0
"""G6: the kernel did it, every time, and in a time that is possible.

* Seen to run: each call launches the declared kernels with their digests, no operation of torch
  runs beside them, nothing falls back, no module is asked for that knows the answer, the process
  has no more threads than before, and memory does not change after it said that it was done. On a
  device a profiler's trace has the same kernels, where it works.
* Ghost: with its launches left out a call leaves its outputs as they were; with content that the
  process has answered before, with content that another process of it has, with new content.
* Time: by the judge's clock, in processes of their own, candidate and stock path in turn; cold not
  faster than the bytes can be moved, and the answers of the measured calls are right.
"""

from collections import Counter
from collections.abc import Iterator

from kimi_k3.decode.kernels.shapes import Role
from kimi_k3.validation.bench import Bench
from kimi_k3.validation.candidate import Candidate
from kimi_k3.validation.draw import some
from kimi_k3.validation.gates.base import Outcome, outcome
from kimi_k3.validation.session import Session, Told
from kimi_k3.validation.timing import Timing, timed
from kimi_k3.validation.trial import Seen, untouched

CALLS = 4


class Identity:
    """See the module."""

    number, name = "G6", "identity"
    closes = (2, 5, 6, 18, 21, 22, 23, 24, 25, 26, 27, 28, 29, 31, 39)

    def judge(self, bench: Bench) -> Outcome:
        """See `base.Gate`."""
        notes: list[str] = []
        found = [*_seen_to_run(bench), *_ghost(bench, bench.session(), answered_here=True)]
        facts: dict[str, float | str] = {"transport": bench.transport}
        if bench.transport == "copy":
            notes.append("memory was copied: modes 2, 22 and 28 are not closed")
        if bench.budget.pairs:
            with bench.fresh() as other:
                found += _ghost(bench, other, answered_here=False)
            found += _traced(bench, notes)
            found += _in_time(bench, facts, notes)
        else:
            notes.append("one process: neither timed, nor traced, nor asked for kept files")
        return outcome(found, facts, notes)


def _seen_to_run(bench: Bench) -> Iterator[str]:
    rng, candidate = bench.rng("identity"), bench.candidate
    number = CALLS if bench.budget.pairs else 2
    calls = [bench.tried(bench.prepared(case, rng)) for case in some(candidate, rng, number)]
    for seen in bench.seen:  # of the other gates, too
        yield from _odd(candidate, seen)
    if calls[-1].told.threads > calls[0].told.threads:
        yield f"{calls[-1].told.threads} threads after some calls, {calls[0].told.threads} before"


def _traced(bench: Bench, notes: list[str]) -> Iterator[str]:
    """What a device's trace has beside the declared kernels, and what it lacks."""
    rng, candidate = bench.rng("trace"), bench.candidate
    if candidate.device == "cpu" or candidate.code is None or not candidate.code.digest:
        return
    (case,) = some(candidate, rng, 1)
    traced = bench.tried(bench.prepared(case, rng), trace=True).told.traced
    if traced is None:
        notes.append("no profiler could tell what ran on the device")
        return
    ran, names = Counter(traced), {one.name for one in candidate.kernels}
    yield from (f"the device ran {name}" for name in ran.keys() - names)
    yield from (f"the device did not run {name}" for name in names - ran.keys())


def _odd(candidate: Candidate, seen: Seen) -> Iterator[str]:
    told, case = seen.told, seen.case
    if told.error:
        yield f"it raised {told.error} ({case})"
    yield from launch_problems(candidate, told)
    if seen.late:
        yield f"memory still changed after the call ({case})"


def launch_problems(candidate: Candidate, told: Told) -> Iterator[str]:
    """What a process said of its call that is not how this candidate should run."""
    declared = {(one.name, one.digest) for one in candidate.kernels}
    for name, digest in told.launches.keys() - declared:
        yield f"it launched {name} of {digest[:12]}, which is not declared"
    for name, _ in declared - told.launches.keys():
        yield f"it did not launch {name} as declared"
    if told.failed:
        yield f"a launch failed: {told.failed[0]}"
    if told.fallbacks:
        yield f"{told.fallbacks} calls fell back"
    if told.foreign:
        yield f"torch ran {', '.join(told.foreign)} beside the kernels"
    if told.asked:
        yield f"it asked for {', '.join(dict.fromkeys(told.asked))}"


def _ghost(bench: Bench, session: Session, *, answered_here: bool) -> Iterator[str]:
    """What a process answers without launches, of content that was answered before and of new."""
    rng = bench.rng("ghost")
    known, new = some(bench.candidate, rng, 2)
    if answered_here:
        bench.tried(bench.prepared(known, rng))
    before = "content that it has answered" if answered_here else "what another process answered"
    for case, what in ((known, before), (new, "new content")):
        same, told = untouched(session, bench.prepared(case, rng))
        if not same:
            yield f"without its launches it answers {what}"
        if told.error:
            yield f"without its launches: {told.error}"


def _in_time(bench: Bench, facts: dict[str, float | str], notes: list[str]) -> Iterator[str]:
    if any(one.role is Role.MAILBOX for one in bench.candidate.memory):
        notes.append("not timed: what arrives by a mailbox has to be sent again for each call")
        return
    measured = timed(bench, bench.candidate.rows[1], bench.rng("timing"))
    facts |= _facts(measured)
    if bench.peak_tb_s is None:
        notes.append("no peak bandwidth is known, so no time is too short")
    yield from measured.faults
    yield from _impossible(bench, measured)


def _impossible(bench: Bench, measured: Timing) -> Iterator[str]:
    if bench.peak_tb_s is None:
        return
    least = measured.bytes_moved / bench.peak_tb_s * 1e-6
    if measured.cold.median < least:
        yield (
            f"{measured.cold.median:.3g} us for {measured.bytes_moved} bytes; at "
            f"{bench.peak_tb_s:g} TB/s they take {least:.3g} us"
        )


def _facts(measured: Timing) -> dict[str, float | str]:
    facts: dict[str, float | str] = {
        "rows": measured.rows,
        "cold us": round(measured.cold.median, 2),
        "warm us": round(measured.warm.median, 2),
    }
    if measured.stock_cold is not None and measured.stock_warm is not None:
        facts["stock cold us"] = round(measured.stock_cold.median, 2)
        facts["stock warm us"] = round(measured.stock_warm.median, 2)
    return facts
