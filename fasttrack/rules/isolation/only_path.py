# SPDX-License-Identifier: Apache-2.0
"""FT223: the specialised path stays a choice."""

import ast
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TypeGuard

from fasttrack.case import Case
from fasttrack.finding import Finding, Level
from fasttrack.manifest.model import Manifest
from fasttrack.meaning.source import parsed
from fasttrack.rules.base import Rule
from fasttrack.rules.isolation.carried import BothSides
from fasttrack.rules.isolation.chosen import OTHER, Chooser, asks, says_yes, things
from fasttrack.rules.isolation.switch_files import Pair, deciding, spelled, switch_of, text
from fasttrack.rules.isolation.switched import Words, code_of


class OnlyPath(Rule):
    """Branches on the switch that are gone while what they guarded is there."""

    id = "FT223"
    slug = "only-path"
    title = "the specialised path stays a choice"
    level = Level.ROUTE
    refuses = (
        "A function of a gate or wired file that had a condition on the manifest's switch (its "
        "option, its value or `switch` itself), and in which what ran for that value alone now "
        "also runs for another one: the condition is gone, compares otherwise, takes more values, "
        "or became an `or`; tables and `match` on the switch count. And a function of a gate that "
        "answered a question and now says yes to everything."
    )
    why = "What ran for those who asked for it runs for everybody, whatever the scope says."
    blind = (
        "A bound of a gate that is moved (cells of the scope ask for evidence), values of the "
        "switch that are computed, and a choice that is moved to another function or file and made "
        "there otherwise."
    )
    fix = "keep the condition on the switch around the specialised path"

    def check(self, case: Case) -> Iterator[Finding]:
        """Looks at every changed gate and wired file."""
        for manifest in case.head.valid.values():
            words = Words.of(switch_of(case, manifest))
            for pair in deciding(case, manifest):
                if any(word in text(case, pair.old) for word in _spoken(words)):
                    yield from self._about(case, manifest, pair, words)
                if pair.path in manifest.code.gate:
                    yield from self._opened(case, pair)

    def _about(self, case: Case, manifest: Manifest, pair: Pair, words: Words) -> Iterator[Finding]:
        old, new = code_of(case, pair.old), code_of(case, pair.new)
        if old is None or new is None:
            return
        both = case.once(BothSides)
        sides = (
            Chooser(old, words, both.old, pair.path, parsed(case, pair.old)),
            Chooser(new, words, both.new, pair.path, parsed(case, pair.new)),
        )
        others = dict.fromkeys(spelled(v) for v in (words.fallback, manifest.code.switch.default))
        for name in old.functions:
            if name in new.functions and any(True for _ in old.branches(words, name)):
                found = _wider(sides, name, [*others, OTHER]) or _freed(sides, name)
                if found is not None:
                    yield self._finding(pair.path, name, found, manifest)

    def _finding(self, path: str, name: str, found: "Freed", manifest: Manifest) -> Finding:
        option = manifest.code.switch.option
        where = {"": f"whatever `{option}` is", OTHER: f"for unknown values of `{option}`"}
        when = where.get(found.value, f"where `{option}` is `{found.value}`")
        return self.finding(
            path=path,
            line=found.line,
            saw=f"`{name}` uses `{found.thing}` {when}",
            want=f"`{found.thing}` under a condition on `{option}`",
        )

    def _opened(self, case: Case, pair: Pair) -> Iterator[Finding]:
        """Functions of a gate that answered a question, and say yes to everything now."""
        old, new = code_of(case, pair.old), code_of(case, pair.new)
        if old is None or new is None:
            return
        for name, function in new.functions.items():
            before = old.functions.get(name)
            if before is None or says_yes(before, old) or not asks(before):
                continue
            if says_yes(function, new):
                yield self.finding(
                    path=pair.path,
                    line=function.lineno,
                    saw=f"`{name}` says yes to everything",
                    want="a gate that leaves steps outside the scope to the fallback",
                )


@dataclass(frozen=True)
class Freed:
    """A thing that stood under the condition and is used without it.

    Attributes:
        thing: its name.
        line: where it is used.
        value: for which value of the switch; empty for all, OTHER for those nobody wrote down.
    """

    thing: str
    line: int
    value: str


def _wider(sides: tuple[Chooser, Chooser], name: str, others: Sequence[str]) -> Freed | None:
    """A thing that ran for the path's value alone, and runs for another value now."""
    old, new = sides
    asked = old.uses(name, old.words.value)
    found: dict[str, Freed] = {}
    for value in others:
        before, after = old.uses(name, value), new.uses(name, value)
        if asked.unsure or before.unsure or after.unsure:
            return None
        only = asked.things.keys() - before.things.keys()
        for thing in _free(new, name, after.things, only):
            found[value] = Freed(thing, after.things[thing], value)
            break
    if not found:
        return None
    first = next(iter(found.values()))
    return replace(first, value="") if len(found) == len(others) else first


def _freed(sides: tuple[Chooser, Chooser], name: str) -> Freed | None:
    """The same where conditions can not be decided: a thing whose condition is gone."""
    old, new = sides
    if new.code.chooses(new.words, name):
        return None
    branches = old.code.branches(old.words, name)
    arms = [node for branch in branches for node in _guarded(branch, old.words)]
    guarded = things(old.carried, old.path, arms)
    rest = [node for node in old.code.running[name] if node not in set(arms)]
    only = guarded.keys() - things(old.carried, old.path, rest).keys()
    used = things(new.carried, new.path, new.code.running[name])
    for thing in _free(new, name, used, only):
        return Freed(thing, used[thing], "")
    return None


def _free(side: Chooser, name: str, used: Mapping[str, int], only: Set[str]) -> Iterator[str]:
    local = {n.id for n in ast.walk(side.code.functions[name]) if _is_bound(n)}
    for thing in used:
        if thing in only - local and not side.words.is_fallback(_last(thing)):
            yield thing


def _spoken(words: Words) -> tuple[str, ...]:
    return (words.option, words.value, words.fallback, "switch")


def _guarded(branch: ast.If | ast.IfExp, words: Words) -> Iterator[ast.AST]:
    """What the specialised arm of a branch holds."""
    fallback = any(
        isinstance(node, ast.Constant) and node.value == words.fallback
        for node in ast.walk(branch.test)
    )
    negated = any(isinstance(node, ast.NotEq | ast.Not) for node in ast.walk(branch.test))
    arm = branch.orelse if fallback is not negated else branch.body
    for statement in arm if isinstance(arm, list) else [arm]:
        yield from ast.walk(statement)


def _last(thing: str) -> str:
    return spelled(thing.rpartition(".")[2])


def _is_bound(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
