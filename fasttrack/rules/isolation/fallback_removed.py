# SPDX-License-Identifier: Apache-2.0
"""FT221: the fallback stays, and can be reached."""

import ast
from collections.abc import Iterator, Sequence

from fasttrack.case import Case
from fasttrack.finding import Finding, Level
from fasttrack.manifest.model import Manifest
from fasttrack.meaning.modules import Modules, modules_of
from fasttrack.rules.base import Rule
from fasttrack.rules.isolation.carried import BothSides, Carried
from fasttrack.rules.isolation.switch_files import (
    Pair,
    deciding,
    owned,
    spelled,
    switch_of,
    text,
)
from fasttrack.rules.isolation.switched import Code, Words, code_of, is_used


class FallbackRemoved(Rule):
    """Gate and wired files that no longer lead to the fallback."""

    id = "FT221"
    slug = "fallback-removed"
    title = "the fallback stays reachable"
    level = Level.ROUTE
    refuses = (
        "A gate or wired file in which functions named the fallback (the manifest's "
        "`switch.fallback` as a word of a name, such as `auto_step`, or any name with `fallback` "
        "in it) and none does any more, while no other changed file of the path gained one; or a "
        "function that still names it where nothing leads: after a return or raise, or under a "
        "condition that never holds; or such a name that newly stands for something of the roots."
    )
    why = (
        "Every step outside the scope is the fallback's. Without it such a step fails, or runs on "
        "kernels that nobody has tested there."
    )
    blind = (
        "A fallback under another name than the manifest's, one that is reached and does "
        "something else, and conditions that only values decide."
    )
    fix = "keep the line that hands the step to the fallback, where it can run"

    def check(self, case: Case) -> Iterator[Finding]:
        """Looks at every changed gate and wired file."""
        for manifest in case.head.valid.values():
            words = Words.of(switch_of(case, manifest))
            for pair in deciding(case, manifest):
                if words.fallback in text(case, pair.old) or "fallback" in text(case, pair.old):
                    yield from self._about(case, manifest, pair, words)

    def _about(self, case: Case, manifest: Manifest, pair: Pair, words: Words) -> Iterator[Finding]:
        old, new = code_of(case, pair.old), code_of(case, pair.new)
        if old is None or new is None:
            return
        yield from self._taken_over(case, manifest, pair, words)
        before = old.fallbacks(words)
        after = new.fallbacks(words)
        want = f"a way to `{manifest.code.switch.fallback}`"
        lost = [n for n in before if before[n] and not after[n]]
        if any(_carries(case, pair.path, new, name, words) for name in lost):
            return
        cut = [name for name in lost if _names(new, name, words)]
        for name in cut:
            line = _names(new, name, words)[0]
            saw = f"nothing leads to the fallback in `{name}` any more"
            yield self.finding(path=pair.path, line=line, saw=saw, want=want)
        if cut or not sum(before.values()) or sum(after.values()):
            return
        if not self._gained_elsewhere(case, manifest, pair, words):
            names = ", ".join(f"`{name}`" for name in before if before[name])
            saw = f"the fallback is named nowhere any more; {names} named it"
            yield self.finding(path=pair.path, saw=saw, want=want)

    def _taken_over(
        self, case: Case, manifest: Manifest, pair: Pair, words: Words
    ) -> Iterator[Finding]:
        """Names of the fallback that stand for something of the roots now, and did not before."""
        both, modules = case.once(BothSides), modules_of(case, manifest)
        old, new = code_of(case, pair.old), code_of(case, pair.new)
        before = dict(_meant(old, both.old, pair.path, words)) if old else {}
        told: set[str] = set()
        for name, (thing, line) in _meant(new, both.new, pair.path, words) if new else ():
            was = before.get(name, ("", 0))[0]
            named = words.is_fallback(spelled(thing.rpartition(".")[2]))
            if name in told or named or thing == was or not _is_own(thing, modules):
                continue
            if not _is_own(was, modules):
                told.add(name)
                saw = f"`{name}` is `{thing}` of the path itself"
                want = f"a way to `{manifest.code.switch.fallback}`"
                yield self.finding(path=pair.path, line=line, saw=saw, want=want)

    def _gained_elsewhere(self, case: Case, manifest: Manifest, pair: Pair, words: Words) -> bool:
        """Whether another file of the path names the fallback more often than before."""
        for other in owned(case, manifest):
            if other.path != pair.path and (new := code_of(case, other.new)) is not None:
                old = code_of(case, other.old)
                before = sum(old.fallbacks(words).values()) if old else 0
                if sum(new.fallbacks(words).values()) > before:
                    return True
        return False


def _carries(case: Case, path: str, code: Code, name: str, words: Words) -> bool:
    """Whether something that a function uses stands for the fallback under another name."""
    carried = case.once(BothSides).new
    return any(
        words.is_fallback(spelled(carried.spoken(path, node).rpartition(".")[2]))
        for node in code.running.get(name, ())
        if is_used(node)
    )


def _meant(
    code: Code, carried: Carried, path: str, words: Words
) -> Iterator[tuple[str, tuple[str, int]]]:
    """Names of the fallback that run, with what each stands for and its line."""
    for nodes in code.running.values():
        for node in nodes:
            match node:
                case ast.Name(id=name, ctx=ast.Load()) if words.names_fallback(node):
                    yield name, (carried.spoken(path, node), node.lineno)
                case _:
                    pass


def _is_own(thing: str, modules: Modules) -> bool:
    """Whether a dotted name is a member of a module in the roots."""
    owner = thing.rpartition(".")[0]
    return bool(owner) and modules.is_own(modules.path_of(owner))


def _names(code: Code, name: str, words: Words) -> Sequence[int]:
    """Lines on which a function names the fallback, whether or not they can run."""
    function = code.functions.get(name)
    if function is None:
        return []
    nodes = (node for statement in function.body for node in ast.walk(statement))
    return sorted(node.lineno for node in nodes if words.names_fallback(node))  # type: ignore[attr-defined]
