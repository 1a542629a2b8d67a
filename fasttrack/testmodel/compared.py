# SPDX-License-Identifier: Apache-2.0
"""The assertions of one test at base and head: which are gone, weaker, looser, repeated less.

Assertions are paired by what they compare and how they are written, so that a helper, a constant or
another file in between changes nothing. What has no pair is gone, unless something as strong about
the same things came in its place.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fasttrack.testmodel.conditions import excludes
from fasttrack.testmodel.cuts import PART, lost
from fasttrack.testmodel.events import IN_A_THREAD, Check, Place
from fasttrack.testmodel.groups import Group, groups_of, is_many, shown
from fasttrack.testmodel.strength import RELATION, SHAPE
from fasttrack.testmodel.tolerance import loosened
from fasttrack.testmodel.values import Either, Value, words

_ERRORS = re.compile(
    r"abs|err|diff|max|norm|cos|sim|ratio|snr|rtol|atol|tol|delta|dist|loss|rate|acc|score|recall",
    re.I,
)
_EVAL = re.compile(r"accura|score|exact_match|recall|f1|pass_rate|eval|gsm8k|mmlu|acceptance", re.I)
_BOUNDS = frozenset({"at most", "at least"})


@dataclass(frozen=True)
class Loss:
    """One way in which the assertions of a test say less.

    Attributes:
        kind: `removed`, `weaker`, `trivial`, `guarded`, `looser`, `untold`, `fewer`, `eval`.
        what: the assertion, in words.
        old: what was there.
        new: what is there instead.
        site: the lines that lead to what is there instead; empty when nothing is.
        sure: nothing else explains it.
    """

    kind: str
    what: str
    old: str
    new: str
    site: tuple[Place, ...]
    sure: bool


def losses(base: Sequence[Check], head: Sequence[Check]) -> Iterator[Loss]:
    """What the assertions of a test no longer say at the head.

    Args:
        base: checks of the test at the base.
        head: checks of the tests that stand for it at the head.
    """
    old = [group for group in groups_of(base) if group.is_live]
    new = groups_of(head)
    pairs = _paired(old, [group for group in new if group.is_live])
    used = {id(partner) for _, partner, _ in pairs if partner is not None}
    spare = [group for group in new if group.is_live and id(group) not in used]
    idle = [group for group in new if not group.is_live]
    for group, partner, certain in pairs:
        if partner is None:
            yield _gone(group, spare, idle)
        elif certain or not _is_implied(group, new):
            less = _less(group, partner, certain, spare, new)
            yield from (x for x in less if x.kind != "guarded" or not _is_split(partner, new))


Pair = tuple[Group, Group | None, bool]


def _paired(old: Sequence[Group], new: Sequence[Group]) -> list[Pair]:
    """Each group of the base with its partner; the strictest likeness first."""
    left = {id(group): group.capacity for group in new}
    taken: dict[int, list[Group]] = {}
    found: dict[int, tuple[Group, bool]] = {}
    for rank, alike in enumerate(_LIKENESS):
        for group in old:
            if id(group) in found:
                continue
            often = sorted(new, key=lambda o: o.times < group.times) if rank >= _CERTAIN else new
            for other in often:
                users = taken.get(id(other), [])
                apart = bool(users) and all(_exclude(group, user) for user in users)
                fresh = not users or apart or is_many(other) or rank == len(_LIKENESS) - 1
                if fresh and (apart or left[id(other)] > 0) and alike(group, other):
                    found[id(group)] = (other, rank < _CERTAIN)
                    left[id(other)] -= not apart
                    taken.setdefault(id(other), []).append(group)
                    break
    return [(g, *found.get(id(g), (None, False))) for g in old]


def _exclude(one: Group, other: Group) -> bool:
    """Whether two assertions stand in branches that exclude each other."""
    return any(excludes(c, d) for c in one.conditions for d in other.conditions)


def _same_bounds(a: Group, b: Group) -> bool:
    """Several comparisons of one helper have the same words, and each its own tolerance."""
    return _same_all(a, b) and _bounds(a) == _bounds(b)


def _bounds(group: Group) -> dict[str, str]:
    return {name: words(value) for name, value in group.tolerances.items()}


def _same_all(a: Group, b: Group) -> bool:
    return _same_text(a, b) and a.first.kind == b.first.kind


def _same_text(a: Group, b: Group) -> bool:
    return bool(a.texts & b.texts)


def _same_source(a: Group, b: Group) -> bool:
    return a.first.source.partition(":")[2] == b.first.source.partition(":")[2]


def _same_kind(a: Group, b: Group) -> bool:
    close = a.first.strength <= b.first.strength
    return close and a.first.kind == b.first.kind and _shares(a, b)


def _as_strong(a: Group, b: Group) -> bool:
    return a.first.strength <= b.first.strength and _shares(a, b)


def _weaker_one(a: Group, b: Group) -> bool:
    return _shares(a, b)


def _covers(a: Group, b: Group) -> bool:
    """One comparison of several contents at once stands for several."""
    return b.capacity > 1 and b.times < b.capacity and _as_strong(a, b)


def _shares(a: Group, b: Group) -> bool:
    return bool(a.first.roots & b.first.roots) or not a.first.roots


_LIKENESS = (
    _same_bounds, _same_all, _same_text, _same_source, _same_kind, _as_strong, _weaker_one, _covers,
)  # fmt: skip
_CERTAIN = 4
"""The first so many leave no doubt that two assertions are one."""


def _gone(group: Group, spare: Sequence[Group], idle: Sequence[Group]) -> Loss:
    what = shown(group)
    for other in idle:
        alike = _same_source(group, other) or _same_text(group, other)
        if other.dead and (alike or group.first.source.endswith(other.first.text)):
            sure = other.dead != IN_A_THREAD  # another thread's failure may be asked for
            dead = f"it is {other.dead}"
            return Loss("trivial", what, "it could fail", dead, other.first.site, sure)
    for other in idle:
        if _shares(group, other) and not other.dead:
            return Loss("trivial", what, "it could fail", "it always holds", other.first.site, True)
    site = spare[0].first.site if spare else ()
    return Loss("removed", what, "asserted", "not asserted", site, not spare)


def _is_split(one: Group, new: Sequence[Group]) -> bool:
    """Whether the same is asserted where the conditions of an assertion do not hold."""
    return any(
        other.is_live
        and other.first.strength >= one.first.strength
        and _shares(one, other)
        and _exclude(one, other)
        for other in new
    )


def _is_weaker(old: Group, new: Group) -> bool:
    """Whether one says less; of the same words, what a number stands for makes no difference."""
    if _same_source(old, new) and old.first.strength == RELATION:
        return new.first.strength < SHAPE
    return old.first.strength > new.first.strength


def _is_implied(old: Group, new: Sequence[Group]) -> bool:
    """Whether a comparison of contents says what an assertion on a shape said."""
    return old.first.strength == SHAPE and any(
        other.is_live and other.first.strength > RELATION and old.first.roots <= other.first.roots
        for other in new
    )


def _cut(old: Group, new: Group, standing: Sequence[Group]) -> Iterator[Loss]:
    """An assertion that looks at less of a result, unless others look at the rest."""
    if old.first.strength < RELATION:
        return
    gained = lost(old.first.cuts, new.first.cuts, new.tolerances.keys() & _BOUNDS)
    if is_many(new):
        gained -= {PART}
    others = [g for g in standing if g is not new and g.is_live and _shares(g, new)]
    for other in others:
        if other.first.strength >= old.first.strength:
            rest = PART in other.first.cuts and not other.texts & new.texts
            gained &= other.first.cuts - ({PART} if rest else set())
    if gained:
        what, place = shown(old), new.first.site
        yield Loss("weaker", what, "the result", " and ".join(sorted(gained)), place, False)


def _less(
    old: Group, new: Group, certain: bool, spare: Sequence[Group], whole: Sequence[Group]
) -> Iterator[Loss]:
    what, place = shown(old), new.first.site
    if _is_weaker(old, new) and new.first.strength < RELATION + 1:
        sure = certain or (old.first.roots == new.first.roots and not spare)
        yield Loss("weaker", what, _says(old), _says(new), place, sure)
        return
    yield from _cut(old, new, whole)
    added = [c for c in new.conditions if c not in old.conditions]
    if added and not old.conditions:
        yield Loss("guarded", what, "on every run", f"only when {added[0][:80]}", place, False)
    if old.times > new.times > 0:
        much = certain and new.times * 2 <= old.times
        yield Loss("fewer", what, f"{old.times} times", f"{new.times} times", place, much)
    elif old.times > 1 and new.times == 0:
        yield Loss("untold", what, f"{old.times} times", "a number that is not told", place, False)
    yield from _looser(old, new, what, certain)


def _looser(old: Group, new: Group, what: str, certain: bool) -> Iterator[Loss]:
    place = new.first.site
    if old.first.strength <= SHAPE < new.first.strength:
        return  # it had no tolerance
    exact_then_bound = not old.tolerances and new.tolerances.keys() & _BOUNDS
    if exact_then_bound:
        return
    for name in old.tolerances.keys() & _BOUNDS:
        if new.first.kind == "bound" and not new.tolerances and _is_tolerance(old):
            told = f"{name} {words(old.tolerances[name])}"
            yield Loss("untold", what, told, "not told", place, False)
    depends = _by_type(old) or (bool(old.tolerances) and _by_type(new))
    then = {name: _when(old.conditions, value) for name, value in new.tolerances.items()}
    for found in loosened(old.tolerances, then, depends=depends):
        if found.name in _BOUNDS and not _is_tolerance(old):
            continue
        if not found.new:
            yield Loss("untold", what, f"{found.name} {found.old}", "not told", place, False)
            continue
        is_eval = found.name in _BOUNDS and bool(
            _EVAL.search(f"{old.first.text} {old.first.source}")
        )
        kind = "eval" if is_eval else "looser"
        before, after = f"{found.name} {found.old}", f"{found.name} {found.new}"
        sure = found.old != "exact" or certain
        yield Loss(kind, what, before, after, place, sure)


def _by_type(group: Group) -> bool:
    """Whether torch takes a tolerance by the operands' type where none is given."""
    return group.first.kind.startswith("torch.testing.")


def _when(conditions: Sequence[str], value: Value) -> Value:
    """What a value is where some conditions hold."""
    if not isinstance(value, Either):
        return value
    kept = tuple(
        (label, each)
        for label, each in value.options
        if not any(excludes(label, condition) for condition in conditions)
    )
    return kept[0][1] if len(kept) == 1 else Either(kept or value.options)


def _is_tolerance(group: Group) -> bool:
    """Whether a bound is on an error or a score, and not on a count that code determines."""
    if group.first.strength <= SHAPE:
        return False
    is_float = any(isinstance(value, float) for value in group.tolerances.values())
    return is_float or bool(_ERRORS.search(group.first.text))


def _says(group: Group) -> str:
    names = {0: "nothing", 1: "that it is there", 2: "shape or type", 3: "a relation", 4: "content"}
    return f"compares {names[group.first.strength]}"
