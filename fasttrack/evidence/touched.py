# SPDX-License-Identifier: Apache-2.0
"""Which units a change touches: those that depend on a byte that it changes."""

from collections.abc import Iterator, Mapping, Sequence

from fasttrack.case import Case, in_roots
from fasttrack.change.tree import Tree
from fasttrack.config import judged_or_head
from fasttrack.errors import FactUnavailable
from fasttrack.evidence.closure import Closure
from fasttrack.globs import matches
from fasttrack.manifest.model import GATE_UNIT, PATH_UNIT, Manifest, Unit


def touched_units(case: Case, manifest: Manifest) -> Mapping[str, str]:
    """Unit id to the reason why its evidence is stale; units left alone are absent.

    The unit `path` is touched by every change inside the roots.
    """
    changed = [entry.path for entry in case.entries]
    inside = [path for path in changed if in_roots(manifest, path)]
    touched = {PATH_UNIT: f"{inside[0]} changed"} if inside else {}
    trees = list(_trees(case)) if inside else []
    closures = [_closure(case, manifest, tree) for tree in trees]
    for unit in manifest.units:
        reason = _direct(unit, changed) or _through_imports(unit.files, inside, closures, trees)
        if reason is not None:
            touched[unit.id] = reason
    if reason := _through_imports(manifest.code.gate, inside, closures, trees):
        touched[GATE_UNIT] = reason
    return touched


def _trees(case: Case) -> Iterator[Tree]:
    """The files after the merge, and the target's when something that they needed was deleted."""
    yield judged_or_head(case.change)
    if any(entry.deleted for entry in case.entries):
        yield case.change.base


def _closure(case: Case, manifest: Manifest, tree: Tree) -> Closure:
    def text_of(path: str) -> str:
        side = tree.get(path)
        if side is None or not side.mode.startswith("100"):
            raise FactUnavailable(f"{path} is no regular file; what it stands for is unknown")
        return case.change.text(side)

    return Closure((p for p in tree if in_roots(manifest, p)), text_of)


def _direct(unit: Unit, changed: list[str]) -> str | None:
    for patterns, what in ((unit.files, "its"), (unit.data, "its data"), (unit.tests, "its test")):
        for path in changed:
            if any(matches(pattern, path) for pattern in patterns):
                return f"{what} file {path} changed"
    return None


def _through_imports(
    patterns: Sequence[str], inside: list[str], closures: list[Closure], trees: list[Tree]
) -> str | None:
    for closure, tree in zip(closures, trees, strict=True):
        own = [p for p in tree if any(matches(pattern, p) for pattern in patterns)]
        reached = closure.of(own)
        for path in inside:
            if path in reached:
                return f"it depends on {path}, which changed"
    return None
