# SPDX-License-Identifier: Apache-2.0
"""Which units a change touches: those whose evidence speaks of other bytes once it is merged.

A unit is touched when its files or its tests, as `fasttrack.evidence.unit_paths` finds them and
statements bind to them, are not the same after the merge as at the target's tip, or when the
manifest has other test files run for it, or other roots. All units are when lines change by which
the path is wired up elsewhere: nothing is reached but through these. A unit's boundary, what its
files or tests import from elsewhere, counts where the policy says that a change there makes
evidence stale.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.config import judged_or_head
from fasttrack.errors import FactUnavailable
from fasttrack.evidence.unit_paths import PathGraph, Reasons, UnitPaths
from fasttrack.manifest.model import Manifest


def touched_units(
    case: Case, manifest: Manifest, base: Manifest | None, graph: PathGraph
) -> Mapping[str, str]:
    """Unit id to the reason why its evidence is stale; units left alone are absent.

    A unit of which nobody can tell what it depends on is touched.

    Args:
        case: the change.
        manifest: the manifest after the merge.
        base: the same at the target's tip; None when it is new.
        graph: of `manifest` and the files after the merge.
    """
    entries = _landing(case)
    reasons = {entry.path: _how(entry) for entry in entries}
    before = None
    if base is not None and (
        _reshapes(entries, manifest, base) or _means_another(entries, judged_or_head(case.change))
    ):
        before = PathGraph(case.change, case.change.base, base, case.config)
    wired = {one.path for each in (manifest, base) if each for one in each.code.wiring}
    if path := _first(reasons, wired):
        return dict.fromkeys(graph.units, f"the path is wired up in {path}, which {reasons[path]}")
    boundary = case.policy.trust.boundary == "stale"
    touched = {}
    for unit in graph.units if reasons or before else ():
        known = before.of(unit) if before and unit in before.units else None
        if reason := _reason(graph.of(unit), known, reasons, boundary=boundary):
            touched[unit] = reason
    return touched


def _landing(case: Case) -> tuple[Entry, ...]:
    """What merging does to the target, or would do if it did not conflict, without evidence."""
    try:
        landing = case.change.landing
    except FactUnavailable:
        return case.entries
    return tuple(e for e in landing if not case.config.classes.is_evidence(e.path))


def _how(entry: Entry) -> str:
    if entry.modified:
        return "changed"
    return "is gone" if entry.deleted else "is new"


def _reshapes(entries: tuple[Entry, ...], manifest: Manifest, base: Manifest) -> bool:
    """Whether a unit may lose a file, or gain one, without a changed byte in what it has after.

    Units are what the manifest says. An import leads elsewhere once its file is gone, or once a
    folder becomes a package.
    """
    if (manifest.code, manifest.units) != (base.code, base.units):
        return True
    inits = (e for e in entries if PurePosixPath(e.path).name == "__init__.py")
    return any(entry.deleted for entry in entries) or any(entry.added for entry in inits)


def _means_another(entries: Iterable[Entry], tree: Iterable[str]) -> bool:
    """Whether a module is new at the top of which there was only a namesake, so that it leaves."""
    new = {e.path for e in entries if e.added and e.path.endswith(".py")}
    names = {path.rpartition("/")[2] for path in new}
    return any(
        tail in new
        for path in tree
        if path.rpartition("/")[2] in names
        for tail in (path[at + 1 :] for at, letter in enumerate(path) if letter == "/")
    )


def _reason(
    after: UnitPaths, before: UnitPaths | None, changed: Mapping[str, str], *, boundary: bool
) -> str:
    """Why one unit is touched; empty when it is not. The cheapest parts are looked at first."""
    try:
        for lead, part in _parts(after, boundary=boundary):
            if path := _first(changed, part):
                return f"{lead} {path} {changed[path]}"
        return _moved(after, before, changed, boundary=boundary) if before else ""
    except FactUnavailable as reason:
        return f"what it depends on can not be told: {reason}"


def _parts(unit: UnitPaths, *, boundary: bool) -> Iterator[tuple[str, Reasons]]:
    """Files that count, with what they are to the unit; each found when it is asked for."""
    yield "its file", unit.own
    yield "it depends on a file that changes:", unit.files
    yield "its tests need a file that changes:", unit.tests
    if boundary:
        yield "it or its tests import a file outside the roots that changes:", unit.boundary


def _moved(
    after: UnitPaths, before: UnitPaths, changed: Mapping[str, str], *, boundary: bool
) -> str:
    """How the unit has other files than it had, of which what it has now is as it was."""
    now, then = _parts(after, boundary=boundary), _parts(before, boundary=boundary)
    for (_, new), (_, old) in zip(now, then, strict=True):
        if lost := _first(old, old.keys() - new.keys()):
            return f"it depended on {lost}, which {changed.get(lost, 'it no longer does')}"
        if gained := _first(new, new.keys() - old.keys()):
            return f"it did not depend on {gained}, and now does"
    if lost := _first(before.runs, {*before.runs} - {*after.runs}):
        return f"{lost} ran for it, and no longer does"
    if gained := _first(after.runs, {*after.runs} - {*before.runs}):
        return f"{gained} did not run for it, and now does"
    return "" if before.root_words == after.root_words else "the roots are other ones"


def _first(paths: Iterable[str], chosen: Container[str]) -> str:
    """The first of the paths that is one of the chosen; empty when none is."""
    return next((path for path in paths if path in chosen), "")
