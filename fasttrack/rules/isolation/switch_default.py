# SPDX-License-Identifier: Apache-2.0
"""FT220: the default of a path's switch stays off."""

import ast
from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.imports import imports_of
from fasttrack.change.tree import Side, Tree
from fasttrack.config import judged_or_head
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding, Level
from fasttrack.manifest.model import Manifest, Switch
from fasttrack.meaning.modules import Modules, modules_of
from fasttrack.meaning.source import is_python, parsed
from fasttrack.policy.model import PathClass
from fasttrack.rules.base import Rule
from fasttrack.rules.isolation.assigned_defaults import assigned
from fasttrack.rules.isolation.carried import BothSides
from fasttrack.rules.isolation.declared_defaults import UNDECIDED, Declared, Scope, declared
from fasttrack.rules.isolation.switch_files import Pair, changed_pair, spelled, switch_of, text

_SET_OTHERWISE = frozenset({PathClass.TESTS, PathClass.DOCS, PathClass.CI})
"""Classes of files that choose a path for themselves."""


class SwitchDefault(Rule):
    """Defaults of a manifest's `switch.option` in code."""

    id = "FT220"
    slug = "switch-default"
    title = "the path stays off by default"
    level = Level.ROUTE
    refuses = (
        "A changed Python file, no test, in which a default of a manifest's `switch.option` is no "
        "longer the manifest's `default`, can no longer be told, or is new and turns the path on: "
        "fields of classes and dataclasses, `Field(...)`, parameters of functions, `add_argument`, "
        "options of click and typer, `set_defaults`, `os.environ.get`, `getattr` and `.get` with a "
        "default, and constants named after the option; resolved through constants and enum "
        "members, also of other files. The same for code that turns the path on by itself: an "
        "assignment where an object is made or where the option has its default, `__defaults__`, "
        "a property, a wrapper that hands the option over, a table that maps the default to the "
        "path's value."
    )
    why = (
        "Nobody has asked for the path who has not turned it on. With another default it serves "
        "everybody, on evidence that was given for a choice."
    )
    blind = (
        "An option under another name than the manifest's, a default in a configuration file, and "
        "one that code assigns later on other conditions."
    )
    fix = "leave the default as the manifest has it"

    def check(self, case: Case) -> Iterator[Finding]:
        """Compares every default on both sides."""
        for manifest in case.head.valid.values():
            switch = switch_of(case, manifest)
            sides = _Sides(case, manifest)
            for pair in _candidates(case, manifest, sides):
                before = {d.place: d.value for d in sides.declared(pair, switch, new=False)}
                for found in sides.declared(pair, switch, new=True):
                    was = before.get(found.place)
                    if _is_moved(found, was, switch):
                        yield self._about(pair.path, found, was, switch)

    def _about(self, path: str, found: Declared, was: str | None, switch: Switch) -> Finding:
        how = f"was `{was}`" if was is not None else "is new"
        value = found.value if found.value == UNDECIDED else f"`{found.value}`"
        return self.finding(
            path=path,
            line=found.line,
            saw=f"the default of `{switch.option}` in `{found.place}` is {value} and {how}",
            want=f"`{switch.default}`, as the manifest says",
        )


def _is_moved(found: Declared, was: str | None, switch: Switch) -> bool:
    if found.value in {was, switch.default}:
        return False
    if was is None:
        return found.value == switch.value
    return found.value != UNDECIDED or was == switch.default


def _candidates(case: Case, manifest: Manifest, sides: "_Sides") -> Iterator[Pair]:
    """Changed files, and the path's deciding files that import a changed one."""
    changed = {e.path for e in case.entries if is_python(e.path)}
    for path in sorted(changed):
        if case.path_class(path) not in _SET_OTHERWISE and (pair := changed_pair(case, path)):
            yield pair
    head = judged_or_head(case.change)
    for path in dict.fromkeys([*manifest.code.gate, *(w.path for w in manifest.code.wiring)]):
        side = head.get(path)
        if path not in changed and side is not None and sides.imports_any(path, side, changed):
            yield Pair(path, case.change.base.get(path) or side, side)


class _Sides:
    """Reads defaults in the tree of one side."""

    def __init__(self, case: Case, manifest: Manifest) -> None:
        self._case = case
        trees = (case.change.base, judged_or_head(case.change))
        self._trees: tuple[tuple[Tree, Modules], ...] = tuple(
            (tree, modules_of(case, manifest, tree)) for tree in trees
        )

    def declared(self, pair: Pair, switch: Switch, *, new: bool) -> list[Declared]:
        """The defaults in one side of a file; none where it says nothing of the option."""
        side = pair.new if new else pair.old
        if spelled(switch.option) not in spelled(text(self._case, side)):
            return []
        try:
            tree = parsed(self._case, side)
        except FactUnavailable:
            return []
        scope = self._scope(pair.path, tree, new=new)
        both = self._case.once(BothSides)
        carried = both.new if new else both.old

        def follow(node: ast.expr) -> str:
            value = carried.constant(pair.path, node)
            return UNDECIDED if value is None else value

        def named(module: str) -> Scope | None:
            return self._named(module, new=new)

        found = declared(tree, switch.option, scope, named, follow)
        return [*found, *assigned(tree, switch)]

    def imports_any(self, path: str, side: Side, changed: set[str]) -> bool:
        """Whether a file imports one of the changed ones."""
        modules = self._trees[1][1]
        try:
            found = imports_of(text(self._case, side))
        except FactUnavailable:
            return False
        return any(
            modules.path_of(modules.absolute(path, one.module, one.level)) in changed
            for one in found
        )

    def _scope(self, path: str, tree: ast.Module, *, new: bool) -> Scope:
        modules = self._trees[new][1]
        return Scope(tree, lambda node: modules.absolute(path, node.module or "", node.level))

    def _named(self, module: str, *, new: bool) -> Scope | None:
        tree, modules = self._trees[new]
        path = modules.path_of(module)
        side = tree.get(path) if path else None
        if side is None or path is None:
            return None
        try:
            return self._scope(path, parsed(self._case, side), new=new)
        except FactUnavailable:
            return None
