# SPDX-License-Identifier: Apache-2.0
"""What each test says less after the merge, told as what was and what is."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from fasttrack.testmodel.cells import lost_cells
from fasttrack.testmodel.collected import Test
from fasttrack.testmodel.conditions import alternatives, concerns
from fasttrack.testmodel.contents import Contents
from fasttrack.testmodel.events import Skip, Trace
from fasttrack.testmodel.hooks import Outcome
from fasttrack.testmodel.merged import goes_with_code, is_merged
from fasttrack.testmodel.partners import Pair, Partners
from fasttrack.testmodel.places import Places
from fasttrack.testmodel.reach import Reach
from fasttrack.testmodel.replaced import paths_of
from fasttrack.testmodel.runner import NOT_IMPORTED
from fasttrack.testmodel.sides import Side
from fasttrack.testmodel.weakening import Kind, Weakening

_HOW = {
    "skip": "skipped", "skipif": "skipped", "xfail": "expected to fail",
    "rerun": "run again until it passes", "ungenerated": "run without generated inputs",
}  # fmt: skip


class Differences:
    """The differences of all pairs."""

    def __init__(self, reach: Reach, base: Side, head: Side, partners: Partners) -> None:
        self._reach = reach
        self._base = base
        self._head = head
        self._partners = partners
        self._places = Places(reach)
        self._contents = Contents(self._places)

    def all(self) -> Iterator[Weakening]:
        """Every difference, test by test."""
        hooks: set[str] = set()
        for pair in self._partners.pairs():
            yield from self._hooks(pair.base.path, hooks)
            yield from self._of(pair)
        for path, reason in self._partners.faults.items():
            yield Weakening.untold(path, reason)

    def _of(self, pair: Pair) -> Iterator[Weakening]:
        base, trace = pair.base, self._base.trace(pair.base)
        before = self._base.outcome(base)
        if before.dropped or _is_off(trace.skips):
            return  # it told nothing before
        if pair.same is None:
            yield self._lost(base, trace)
            return
        found = list(self._less(replace(pair, others=()), before, trace))
        if found and pair.others:
            runs = tuple(filter(self._runs, pair.others))
            found = list(self._less(replace(pair, others=runs), before, trace))
        yield from found

    def _less(self, pair: Pair, before: Outcome, trace: Trace) -> Iterator[Weakening]:
        """What those that stand for a test say less than it did."""
        base = pair.base
        traces = [self._head.trace(test) for test in (pair.same or base, *pair.others)]
        skipped = list(self._skips(pair, before, traces))
        yield from skipped
        if any(found.sure for found in skipped):
            return
        yield from self._parameters(pair)
        if self._base.files.spent or self._head.files.spent:
            return  # the whole was too much; told once
        if not trace.complete:
            return
        if not all(t.complete for t in traces):
            yield self._places.untold(
                pair.same or base, "what it does can not be followed any more"
            )
            return
        yield from self._contents.assertions(pair, trace, traces)
        yield from self._contents.seeds(pair, trace, traces)
        yield from self._contents.loops(pair, trace, traces)
        yield from self._contents.mocks(pair, trace, traces[0])

    def _runs(self, test: Test) -> bool:
        """Whether a test that stands for a part of another one is not left out itself."""
        return not self._head.outcome(test).dropped and not _is_off(self._head.trace(test).skips)

    @cached_property
    def _gone_modules(self) -> tuple[str, ...]:
        """Dotted names of program files that the change deletes."""
        return tuple(
            entry.path.removesuffix(".py").replace("/", ".")
            for entry in self._reach.case.entries
            if entry.deleted and entry.path.endswith(".py") and not self._reach.is_tests(entry.path)
        )

    def _lost(self, base: Test, trace: Trace) -> Weakening:
        """A test that nothing stands for."""
        skip = self._module_skip(base.path)
        if skip is not None:
            saw = f"test `{base.name}` is skipped with its whole module"
            named, want = self._reach.is_named(base.path), "a test that runs"
            return Weakening(Kind.SKIPPED, *skip.place, saw, want, not skip.condition, named)
        texts = " ".join(check.text for check in trace.checks)
        with_code = any(name in texts for name in self._gone_modules)
        why = self._why_lost(base)
        saw = f"test `{base.name}`{_sets(base)} {why}"
        where = base.path
        named = self._reach.is_named(base.path)
        want = "every test of the target branch, under whatever name"
        with_code = with_code or goes_with_code(self._reach, base)
        sure = not with_code and not is_merged(self._reach, base)
        return Weakening(Kind.LOST, where, 0, saw, want, sure, named)

    def _module_skip(self, path: str) -> Skip | None:
        """The call that ends a module before its tests are defined."""
        trace = self._head.files.traces.get(path)
        found = trace.skips if trace is not None else []
        return next((skip for skip in found if not skip.condition), None)

    def _why_lost(self, base: Test) -> str:
        if base.path not in self._head.tree:
            return "is gone with its file"
        if not self._head.settings(base.path).is_file(base.path):
            return "is in a file that is no test file any more"
        name = base.name.rpartition("::")[2]
        module = self._head.files.module(base.path)
        owner = base.name.partition("::")[0]
        still = owner in module.names or name in module.names
        return "is not collected any more" if still else "is gone"

    def _skips(self, pair: Pair, before: Outcome, traces: Sequence[Trace]) -> Iterator[Weakening]:
        head = pair.same or pair.base
        named = self._reach.is_named(pair.base.path)
        after = self._head.outcome(head)
        if after.dropped:
            saw = f"test `{head.name}` is left out by {after.dropped}"
            place = self._places.of(head, (after.where, 0))
            yield Weakening(Kind.SKIPPED, *place, saw, "a test that runs", True, named)
            return
        if before.told and not after.told:
            yield self._places.untold(head, "a hook decides whether it runs")
        old = [*self._base.trace(pair.base).skips, *before.skips]
        new = [*traces[0].skips, *after.skips]
        known = {(skip.how, one) for skip in old for one in alternatives(skip.condition)}
        before_it = [skip.condition for skip in old if skip.how == "skip"]
        fresh = [
            skip
            for skip in new
            if any((skip.how, one) not in known for one in alternatives(skip.condition))
            and concerns(skip.condition, pair.base, (head, *pair.others), before_it)
        ]
        if not self._base.trace(pair.base).complete:
            marked = (head.path, head.line)  # what a body does may have been there before
            fresh = [skip for skip in fresh if skip.place == marked]
        if any(_needs(skip) for skip in old):
            fresh = [s for s in fresh if not self._is_in_the_tree(_needs(s))]
        if not named and len(old) >= len(new) and all(skip.condition for skip in fresh):
            return  # a condition in other words
        for skip in sorted(fresh, key=lambda s: bool(s.condition))[:1]:
            how = _HOW[skip.how]
            when = f" when {skip.condition[:80]}" if skip.condition else ""
            saw = f"test `{head.name}` is newly {how}{when}"
            path, line = self._places.of(head, skip.place)
            sure = not skip.condition and skip.how != "rerun"
            yield Weakening(Kind.SKIPPED, path, line, saw, "a test that runs", sure, named)

    def _is_in_the_tree(self, name: str) -> bool:
        return any(path in self._head.tree for path in paths_of(name))

    def _parameters(self, pair: Pair) -> Iterator[Weakening]:
        base, head = pair.base, pair.same or pair.base
        standing = (head, *pair.others)
        named = self._reach.is_named(base.path)
        if not all(test.decided for test in standing):
            if base.decided and base.axes and not head.decided:
                open_ = next(axis for axis in head.axes if axis.sets is None)
                yield self._places.untold(
                    head, f"the values of {', '.join(open_.names)} are not told"
                )
            return
        if not base.decided:
            return
        lost, skipped, shrunk = lost_cells(base, standing)
        want = "at least the sets of parameters of the target branch"
        if lost and (shrunk or named):
            count = sum(test.count() for test in standing)
            saw = (
                f"test `{base.name}`: {base.count()} -> {count} sets of parameters, without {lost}"
            )
            path, line = self._places.of(head)
            yield Weakening(Kind.PARAMETERS, path, line, saw, want, shrunk, named)
        if skipped:
            saw = f"test `{base.name}`: newly skipped for {skipped}"
            place = self._places.of(head)
            yield Weakening(Kind.SKIPPED, *place, saw, "parameters that run", True, named)

    def _hooks(self, path: str, told: set[str]) -> Iterator[Weakening]:
        old = self._base.hooks(path)
        for name, text in self._head.hooks(path).items():
            if old.get(name) != text and name not in told:
                told.add(name)
                place = name.rpartition(" in ")[2]
                saw = f"`{name}` decides over tests and is new or changed"
                yield Weakening(Kind.SKIPPED, place, 0, saw, "hooks that leave tests alone")


def _is_off(skips: Sequence[Skip]) -> bool:
    return any(skip.how == "skip" and not skip.condition for skip in skips)


def _needs(skip: Skip) -> str:
    """The module that a test is skipped without; empty for other conditions."""
    name, found, rest = skip.condition.partition(NOT_IMPORTED)
    return name if found and not rest else ""


def _sets(test: Test) -> str:
    return f" with {test.count()} sets of parameters" if test.count() > 1 else ""
