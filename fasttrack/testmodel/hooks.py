# SPDX-License-Identifier: Apache-2.0
"""What `conftest.py` files make of a test that is collected: dropped, skipped, or left alone."""

import ast
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from fasttrack.testmodel import calling
from fasttrack.testmodel.collected import Test
from fasttrack.testmodel.events import Skip
from fasttrack.testmodel.follower import Follower
from fasttrack.testmodel.frames import Ended, Exhausted
from fasttrack.testmodel.modules import Files
from fasttrack.testmodel.values import Function, Instance, Module, Opaque, Partial, Value

if TYPE_CHECKING:
    from _collections_abc import dict_items

_MODIFYING = "pytest_collection_modifyitems"
_DECIDING = (
    "pytest_runtest_", "pytest_pyfunc_call", "pytest_ignore_collect", "pytest_collect_",
    "pytest_pycollect_", "pytest_itemcollected", "pytest_make_parametrize_id",
    "pytest_generate_tests", "pytest_sessionfinish", "pytest_report_teststatus",
)  # fmt: skip
_AROUND = (
    _MODIFYING, "pytest_configure", "pytest_sessionstart", "pytest_collection", "pytest_plugin",
)  # fmt: skip
"""Hooks that mostly leave tests alone, unless they assign to what is not theirs."""
_BY_MARKS = frozenset({"keywords", "get_closest_marker", "iter_markers"})
_EXITS = re.compile(r"(?:attr|id)='(?:exitstatus|_?exit)', ctx|SystemExit")
"""What the end of a session can decide by."""


@dataclass(frozen=True)
class Outcome:
    """What becomes of a collected test.

    Attributes:
        dropped: what leaves it out; empty when it stays.
        where: the file that does.
        told: whether the text tells.
        skips: skips that hooks put on it.
    """

    dropped: str = ""
    where: str = ""
    told: bool = True
    skips: tuple[Skip, ...] = ()


def after_hooks(test: Test, files: Files, conftests: Sequence[Module]) -> Outcome:
    """What the `conftest.py` files above a test make of it."""
    skips: list[Skip] = []
    told = True
    for conftest in conftests:
        ignored = _ignored(test.path, conftest)
        if ignored:
            return Outcome(f"`collect_ignore` in {conftest.path}", conftest.path)
        hook = conftest.names.get(_MODIFYING)
        if isinstance(hook, Function):
            kept, found = _modified(test, hook, files)
            skips += found
            if kept is False:
                return Outcome(f"`{_MODIFYING}` in {conftest.path}", conftest.path)
            told = told and kept is not None
    return Outcome(told=told, skips=tuple(skips))


def _ignored(path: str, conftest: Module) -> bool:
    folder = posixpath.dirname(conftest.path)
    inside = path.removeprefix(f"{folder}/") if folder else path
    for item in _texts(conftest.names.get("collect_ignore")):
        plain = posixpath.normpath(item)
        if inside == plain or inside.startswith(f"{plain}/"):
            return True
    return any(fnmatchcase(inside, p) for p in _texts(conftest.names.get("collect_ignore_glob")))


def _texts(value: Value) -> Iterator[str]:
    if isinstance(value, list | tuple | set):
        yield from (item for item in value if isinstance(item, str))


Modified = tuple[bool | None, list[Skip]]
"""Whether a test stays, when the text tells, and the skips that a hook puts on it."""


def _modified(test: Test, hook: Function, files: Files) -> Modified:
    """Whether the test is still among the items; None when the text does not tell.

    What a hook makes of one test holds for all with its marks, unless it asked for the name.
    """
    marks = frozenset(mark.name for mark in test.marks)
    known = files.by_marks.get((id(hook), marks))
    if known is None:
        names = _Watched(test, marks)
        known = _followed(hook, Instance(Opaque("item", external=True), names), files)
        if not names.told_name:
            files.by_marks[id(hook), marks] = known
    return known


class _Watched(dict[str, Value]):
    """Attributes of a collected item; remembers whether somebody asked which one it is."""

    def __init__(self, test: Test, marks: frozenset[str]) -> None:
        name = test.name.rpartition("::")[2]
        super().__init__(name=name, originalname=name, nodeid=f"{test.path}::{test.name}")
        self["keywords"] = dict.fromkeys(sorted(marks), True)
        held = (tuple(sorted(marks)),)
        self["get_closest_marker"] = Partial(Opaque("closest marker", external=True), held, {})
        self["iter_markers"] = Partial(Opaque("markers", external=True), held, {})
        self.told_name = False

    def __getitem__(self, name: str) -> Value:
        self.told_name = self.told_name or name not in _BY_MARKS
        return super().__getitem__(name)

    def items(self) -> "dict_items[str, Value]":
        self.told_name = True
        return super().items()


def _followed(hook: Function, item: Instance, files: Files) -> Modified:
    items: list[Value] = [item]
    follower = Follower(files, files.overrides)
    spec = hook.node.args
    given = {a.arg: items for a in (*spec.posonlyargs, *spec.args) if a.arg == "items"}
    put_back = files.restore()
    try:
        calling.call(follower, hook, [], given, hook.node, hook.scope)
    except Ended:
        pass
    except Exhausted:
        return None, []
    finally:
        put_back()
    if item in items:
        return True, follower.trace.skips
    return (False if not items else None), follower.trace.skips


def _changes_others(node: ast.AST) -> bool:
    """Whether a hook assigns to attributes of modules, classes or functions."""
    for inner in ast.walk(node):
        match inner:
            case ast.Assign(targets=targets):
                pass
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                targets = [target]
            case ast.Call(func=ast.Name(id="setattr"), args=[owner, *_]):
                targets = [ast.Attribute(owner, "")]
            case _:
                continue
        if any(_is_of_others(target) for target in targets):
            return True
    return False


_HANDED = frozenset({"config", "item", "session", "self", "parser", "metafunc"})
_REACHING = frozenset({"module", "cls", "function", "obj", "__dict__", "__globals__"})


def _is_of_others(target: ast.expr) -> bool:
    """Whether a target leads through what a hook is handed to the tests, or to another module."""
    if not isinstance(target, ast.Attribute | ast.Subscript):
        return False
    inner: ast.expr = target
    names: list[str] = []
    while isinstance(inner, ast.Attribute | ast.Subscript):
        names.append(inner.attr if isinstance(inner, ast.Attribute) else "")
        inner = inner.value
    if not _REACHING.isdisjoint(names[1:]):
        return True
    if not isinstance(target, ast.Attribute) or not isinstance(inner, ast.Name):
        return False
    return inner.id not in _HANDED


def deciding_hooks(conftests: Sequence[Module]) -> dict[str, str]:
    """Hooks that run around or instead of tests: where and which, to what they say."""
    found: dict[str, str] = {}
    for conftest in conftests:
        for name, value in conftest.names.items():
            if not isinstance(value, Function):
                continue
            decides = name.startswith(_DECIDING) and name != _MODIFYING
            if decides or (name.startswith(_AROUND) and _changes_others(value.node)):
                text = ast.dump(value.node)
                if name != "pytest_sessionfinish" or _EXITS.search(text):
                    found[f"{name} in {conftest.path}"] = text
    return found
