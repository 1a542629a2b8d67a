# SPDX-License-Identifier: Apache-2.0
"""What a test that still runs does less: assertions, seeds, loops, and code that is replaced."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from fasttrack.testmodel.collected import Test
from fasttrack.testmodel.compared import Loss, losses
from fasttrack.testmodel.conditions import as_before, as_still
from fasttrack.testmodel.drawn import shown
from fasttrack.testmodel.events import Check, Loop, Seed, Trace
from fasttrack.testmodel.expected import Expected
from fasttrack.testmodel.known import SAMPLES
from fasttrack.testmodel.likeness import alike
from fasttrack.testmodel.merged import speaks_of_gone_code
from fasttrack.testmodel.partners import Pair
from fasttrack.testmodel.places import Places
from fasttrack.testmodel.replaced import Replacements
from fasttrack.testmodel.values import Either, Value, is_known, words
from fasttrack.testmodel.weakening import Kind, Weakening

TOLD_OF_A_KIND = 3
"""Findings of one kind for one test; whoever reads three looks at the whole test."""
_KINDS = {
    "removed": Kind.ASSERTION, "weaker": Kind.ASSERTION, "trivial": Kind.TRIVIAL,
    "guarded": Kind.TRIVIAL, "looser": Kind.TOLERANCE, "eval": Kind.EVALUATION,
    "untold": Kind.UNTOLD, "fewer": Kind.ITERATIONS,
}  # fmt: skip
_WANTS = {
    Kind.ASSERTION: "the assertion, or one that says as much",
    Kind.TRIVIAL: "an assertion that can fail the test",
    Kind.TOLERANCE: "a tolerance no looser than before",
    Kind.EVALUATION: "a bar no lower than before",
    Kind.ITERATIONS: "as many repetitions as before",
    Kind.UNTOLD: "a value that can be read from the text",
}


class Contents:
    """The differences between what tests do at base and head."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._replacements = Replacements(places.reach)
        self._expected = Expected(places.reach, self._replacements)

    def assertions(self, pair: Pair, trace: Trace, traces: Sequence[Trace]) -> Iterator[Weakening]:
        """Assertions that are gone, or say less."""
        head = pair.same or pair.base
        named = self._places.reach.is_named(pair.base.path)
        standing = (head, *pair.others)
        checks = [as_before(check, pair.base, standing) for check in _unequal(traces)]
        found = list(losses([as_still(c, pair.base, standing) for c in trace.checks], checks))
        grown = _cells(pair.base) < sum(map(_cells, (head, *pair.others)))
        same = (head.path, head.name) == (pair.base.path, pair.base.name)
        told: Counter[str] = Counter()
        for loss in found:
            told[loss.kind] += 1
            if (loss.kind == "fewer" and grown) or told[loss.kind] > TOLD_OF_A_KIND:
                continue  # a loop became a parametrisation, or a reader knows by now
            kind = _KINDS[loss.kind]
            path, line = self._places.of(head, *reversed(loss.site))
            saw = _told(head, loss)
            sure = loss.sure and not pair.others and (same or alike(pair.base, head))
            sure = sure and not speaks_of_gone_code(self._places.reach, loss.what)
            yield Weakening(kind, path, line, saw, _WANTS[kind], sure, named)
        if not told:
            yield from self._expected_of(pair, trace, checks)

    def _expected_of(
        self, pair: Pair, trace: Trace, checks: Sequence[Check]
    ) -> Iterator[Weakening]:
        """Assertions as strong as before that are about something else."""
        head = pair.same or pair.base
        named = self._places.reach.is_named(pair.base.path)
        for saw, site in self._expected.changes(trace.checks, checks):
            path, line = self._places.of(head, *reversed(site))
            want = "the same results against the same expected data"
            saw_of = f"test `{head.name}`: {saw}"
            yield Weakening(Kind.ASSERTION, path, line, saw_of, want, sure=False, named=named)

    def seeds(self, pair: Pair, trace: Trace, traces: Sequence[Trace]) -> Iterator[Weakening]:
        """Seeds that varied and do not any more."""
        head = pair.same or pair.base
        named = self._places.reach.is_named(pair.base.path)
        seeds = list(chain.from_iterable(t.seeds for t in traces))
        free = [seed for seed in trace.seeds if not _is_pinned(seed)]
        pinned = [seed for seed in seeds if _is_pinned(seed)]
        if not pinned or any(not _is_pinned(seed) for seed in seeds):
            return
        if free or (not trace.seeds and named and _is_random(trace)):
            was = _options(free[0].value) if free else "none"
            saw = f"test `{head.name}`: seed {was} -> always {words(pinned[0].value)}"
            path, line = self._places.of(head, pinned[0].place)
            sure = bool(free)
            yield Weakening(Kind.SEED, path, line, saw, "seeds as varied as before", sure, named)

    def loops(self, pair: Pair, trace: Trace, traces: Sequence[Trace]) -> Iterator[Weakening]:
        """Repetitions that are cut."""
        head = pair.same or pair.base
        named = self._places.reach.is_named(pair.base.path)
        after = _counts(chain.from_iterable(t.loops for t in traces))
        for what, old in _counts(trace.loops).items():
            new = after.get(what)
            if new is None or new.count >= old.count or old.count < 1:
                continue
            short = what if len(what) <= 40 else "a loop"
            samples = what.partition(" of ")[0] in SAMPLES
            kind = Kind.EVALUATION if samples else Kind.ITERATIONS
            path, line = self._places.of(head, new.place)
            if new.count < 1:
                yield self._places.untold(head, f"{short}: {shown(old.count)} -> not told")
                continue
            saw = f"test `{head.name}`: {short}: {shown(old.count)} -> {shown(new.count)}"
            yield Weakening(kind, path, line, saw, _WANTS[kind], True, named)

    def mocks(self, pair: Pair, trace: Trace, head_trace: Trace) -> Iterator[Weakening]:
        """Code under test that something stands in for."""
        head = pair.same or pair.base
        named = self._places.reach.is_named(pair.base.path)
        known = {found.target for found in trace.replaced}
        for found in head_trace.replaced:
            if found.target in known:
                continue
            known.add(found.target)
            governed = self._replacements.governed(found.target)
            if not governed:
                continue
            sure = self._replacements.is_checked(found.target, trace.checks)
            saw = f"test `{head.name}` puts something in the place of `{found.target}`"
            path, line = self._places.of(head, found.place)
            want = "tests of the code itself"
            yield Weakening(Kind.MOCK, path, line, saw, want, sure, named)


def _told(head: Test, loss: Loss) -> str:
    return f"test `{head.name}`: {loss.what}: {loss.old} -> {loss.new}"


def _cells(test: Test) -> int:
    return test.count() if test.decided else 0


def _unequal(traces: Sequence[Trace]) -> list[Check]:
    """Checks of several tests; those that all of them have count once."""
    found = list(traces[0].checks)
    known = {check.text for check in found}
    for trace in traces[1:]:
        found += [check for check in trace.checks if check.text not in known]
    return found


def _options(value: Value) -> str:
    """A value, or the values that it may have."""
    if isinstance(value, Either):
        return ", ".join(words(option) for option in islice(value.values(), 4))
    return words(value)


def _is_pinned(seed: Seed) -> bool:
    return is_known(seed.value) and not isinstance(seed.value, Either)


def _is_random(trace: Trace) -> bool:
    return any("rand" in check.text for check in trace.checks)


def _counts(loops: "Iterator[Loop] | Sequence[Loop]") -> dict[str, Loop]:
    """The largest count of each loop."""
    found: dict[str, Loop] = {}
    for loop in loops:
        if loop.what not in found or loop.count > found[loop.what].count:
            found[loop.what] = loop
    return found
