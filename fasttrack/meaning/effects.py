# SPDX-License-Identifier: Apache-2.0
"""What the code of a file reaches out for: each effect with its target, its way there and its line.

`effects_of` reads one file; `brought` leaves out what the file did before the change. A file that
can not be read has no effects here; FT219 reports it.
"""

import ast
import gc
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from fasttrack.case import Case
from fasttrack.change.tree import Entry, Side, Tree
from fasttrack.config import judged_or_head
from fasttrack.errors import FactUnavailable
from fasttrack.manifest.model import Manifest
from fasttrack.meaning.frames import Found
from fasttrack.meaning.kinds import Kind
from fasttrack.meaning.modules import modules_of
from fasttrack.meaning.pieces import tree_of
from fasttrack.meaning.project import Project
from fasttrack.meaning.reader import Reader
from fasttrack.meaning.scopes import Scope
from fasttrack.meaning.source import is_python, is_regular, source_of
from fasttrack.meaning.texts import KEPT_CHARACTERS, Texts

EFFECTS_LIMIT = 400
"""Effects of one file that are told apart; nobody reads more."""
_KEY_LIMIT = 400
_GARBAGE_LIMIT = 1_000_000
"""Characters that are parsed before garbage is collected; a tree takes a hundred times that."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Effect:
    """One thing outside the roots that code reaches for.

    Attributes:
        kind: which rule it belongs to.
        target: dotted name of the foreign object.
        how: what is done to it and how it was reached, in words.
        line: first line of the statement or call.
        end_line: its last line.
        key: what stays the same when lines move.
        at_import: it happens when the module is imported, and not only when a function is called.
    """

    kind: Kind
    target: str
    how: str
    line: int
    end_line: int
    key: str
    at_import: bool


@dataclass(frozen=True)
class Reading:
    """What was found in one file.

    Attributes:
        effects: in the order of their lines.
        fault: what of it could not be read, in words; empty when all of it was.
    """

    effects: tuple[Effect, ...]
    fault: str = ""


_NOTHING = Reading(())
_TOO_DEEP = "the source is nested too deeply to be followed"


def effects_of(case: Case, path: str, side: Side) -> Sequence[Effect]:
    """The effects of a governed file after the merge; none where it can not be read."""
    return reading_of(case, path, side).effects


def reading_of(case: Case, path: str, side: Side) -> Reading:
    """What was found in a governed file after the merge."""
    manifest = case.governing(path)
    if manifest is None or not is_python(path) or not is_regular(side):
        return _NOTHING
    return case.once(_Readings).of(manifest, path, side, base=False)


def brought(case: Case) -> Sequence[tuple[Entry, Effect]]:
    """The effects that the change brings, with the entries that they are in."""
    with _uncollected():
        return case.once(_brought)


def _brought(case: Case) -> Sequence[tuple[Entry, Effect]]:
    readings, tree = case.once(_Readings), judged_or_head(case.change)
    found: list[tuple[Entry, Effect]] = []
    entries = [entry for entry in case.governed_entries() if is_python(entry.path)]
    for entry in entries:
        side = tree.get(entry.path)
        manifest = case.head.governing(entry.path) or case.base.governing(entry.path)
        if side is None or manifest is None or side == entry.old:
            continue
        now = readings.of(manifest, entry.path, side, base=False).effects
        if now:
            before = _before(case, entry, manifest, entries)
            for effect in now:
                # What happened at import may now wait for a call, but not the other way round.
                held = [(effect.key, late) for late in (effect.at_import, True)]
                known = next((one for one in held if before[one]), None)
                if known is None:
                    found.append((entry, effect))
                else:
                    before[known] -= 1
    return tuple(found)


def _before(
    case: Case, entry: Entry, manifest: Manifest, entries: Sequence[Entry]
) -> Counter[tuple[str, bool]]:
    """Effects that a file had, at the merge base or the tip, or that a file had that is gone."""
    readings = case.once(_Readings)
    tip = case.change.base.get(entry.path)
    sides = [side for side in (entry.old, tip) if side is not None and is_regular(side)]
    before: Counter[tuple[str, bool]] = Counter()
    for side in sides:
        before |= _counted(readings.of(manifest, entry.path, side, base=True))
    if not sides:
        for gone in entries:
            if gone.deleted and case.base.governing(gone.path) is not None:
                before += _counted(readings.of(manifest, gone.path, gone.old, base=True))
    return before


def _counted(reading: Reading) -> Counter[tuple[str, bool]]:
    return Counter((effect.key, effect.at_import) for effect in reading.effects)


class _Readings:
    """The readings of one case, one for each file and side."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._projects: dict[tuple[str, bool], Project] = {}
        self._known: dict[tuple[str, str, bool], Reading] = {}
        self._texts = Texts()
        self._sources: dict[str, str] = {}
        self._kept = 0
        self._parsed = 0

    def of(self, manifest: Manifest, path: str, side: Side, *, base: bool) -> Reading:
        """What was found in a file, as the tree of the target or that after the merge has it."""
        key = (path, side.oid, base)
        if key not in self._known:
            try:
                with _uncollected():
                    self._known[key] = self._read(manifest, path, side, base=base)
            except FactUnavailable as reason:
                self._known[key] = Reading((), str(reason))
        return self._known[key]

    def _read(self, manifest: Manifest, path: str, side: Side, *, base: bool) -> Reading:
        project = self._project(manifest, base=base)
        source = self._text_of(side)
        left = project.sketch(path, source)
        if left is None:
            return _NOTHING
        self._parsed += len(left.source)
        if self._parsed > _GARBAGE_LIMIT:
            self._parsed = 0
            gc.collect()  # scopes and what is in them refer to each other
        tree = tree_of(source, left)
        scope = Scope(path, project.modules.name_of(path))
        reader = Reader(project, scope, recording=True)
        try:
            reader.read(tree, left)
        except RecursionError:
            reader.too_deep = True
        found = sorted(
            (_effect(item, path) for item in list(reader.found.values())[:EFFECTS_LIMIT]),
            key=lambda effect: (effect.line, effect.kind, effect.target),
        )
        return Reading(tuple(found), _TOO_DEEP if reader.too_deep else "")

    def _project(self, manifest: Manifest, *, base: bool) -> Project:
        key = (manifest.name, base)
        if key not in self._projects:
            case = self._case
            tree = case.change.base if base else judged_or_head(case.change)
            self._projects[key] = Project(
                modules_of(case, manifest, tree),
                partial(self._source, tree),
                lambda project, scope: Reader(project, scope, recording=False),
                namespaces_of(manifest),
                self._texts,
            )
        return self._projects[key]

    def _source(self, tree: Tree, path: str) -> str:
        side = tree.get(path)
        if side is None:
            raise FactUnavailable(f"no file {path}")
        return self._text_of(side)

    def _text_of(self, side: Side) -> str:
        """The text of a file; the same for the same blob, until too many are kept."""
        if side.oid not in self._sources:
            if self._kept > KEPT_CHARACTERS:
                self._sources.clear()
                self._kept = 0
            self._sources[side.oid] = source_of(self._case, side)
            self._kept += len(self._sources[side.oid])
        return self._sources[side.oid]


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keeps the garbage collector from walking trees while they are made: half of the time.

    `_Readings` has garbage collected meanwhile by how much it has parsed.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def namespaces_of(manifest: Manifest) -> frozenset[str]:
    """Namespaces of PyTorch operators that are a path's own.

    The manifest's name and every folder or file name on the way to a root, with `_` for what is no
    letter or digit; and what begins with one of them and `_`.
    """
    names = [manifest.name, *(part for root in manifest.code.roots for part in root.split("/"))]
    plain = (name.removesuffix(".py") for name in names if name)
    return frozenset("".join(c if c.isalnum() else "_" for c in name) for name in plain)


def _effect(found: Found, path: str) -> Effect:
    node = found.calls[0].node if found.calls else found.node
    line = getattr(node, "lineno", 0)
    key = "\0".join((found.kind, found.target.name, _text(found)))
    end_line = getattr(node, "end_lineno", line)
    how = _how(found, path)
    return Effect(found.kind, found.target.name, how, line, end_line, key, found.at_import)


def _how(found: Found, path: str) -> str:
    """`set through ...`, then how the object was reached, then through which calls."""
    parts = [found.through, *(step for step in found.target.steps if step)]
    places = [_line(found.node), *(_line(call.node) for call in found.calls[::-1])]
    for call, line in zip(found.calls[::-1], places, strict=False):
        name = "a lambda" if call.function.name == "lambda" else f"`{call.function.name}`"
        file = call.function.scope.path
        parts.append(f"in {name} ({'' if file == path else f'{file}, '}line {line})")
    if found.calls:
        parts.append(f"called at line {places[-1]}")
    return ", ".join(parts)


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def _text(found: Found) -> str:
    """What is written there in one spelling, whatever local names are called; long ones are cut."""
    try:
        text = ast.unparse(found.node)[:_KEY_LIMIT]
    except RecursionError:
        return type(found.node).__name__
    return _WORD.sub(lambda word: "_" if word[0] in found.local else word[0], text)
