# SPDX-License-Identifier: Apache-2.0
"""What of the tree a child used that no digest holds: told with its bytes, or as undeclared.

A child reports paths; the bytes are the collector's own reading, of a tree that a test can not
write where there is a wall. What git does not have is left out: what was built or generated in the
tree is the runner's, as what is installed there is.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from fasttrack.case import lies_in
from fasttrack.errors import InputError
from fasttrack.evidence.child_report import ChildReport
from fasttrack.evidence.on_disk import open_regular
from fasttrack.evidence.plan import LOADED, Plan, PlannedUnit
from fasttrack.evidence.predicates.common import BoundaryFile

MAX_BOUNDARY = 4096
"""Files that a statement can tell with their bytes."""
OWN_DEPTH = 3
"""Folders from the top down to a package, as in `python/src/engine`."""


def used_files(
    plan: Plan, unit: PlannedUnit, report: ChildReport, root: Path
) -> tuple[tuple[BoundaryFile, ...], tuple[str, ...]]:
    """The boundary of a run, the plan's first, and the undeclared files, each sorted by path.

    Modules outside the roots may be imported, and the configuration and pytest's own settings may
    be read: their bytes are told. A `conftest.py` is no such module, as nobody imports it.

    Args:
        plan: the plan.
        unit: whose cell was measured.
        report: of the child.
        root: the source tree.
    """
    declared = set(_listed(unit))
    imported = {path for path in report.imported if not _binds(plan, path)}
    read = {path for path in report.opened if lies_in(plan.unbound, path)}
    beside = frozenset(plan.beside)
    told, unread = list(unit.boundary), set[str]()
    for path in sorted(((imported & beside) | (read & beside)) - declared):
        sha256 = _sha256(root, path) if len(told) < MAX_BOUNDARY else ""
        if sha256:
            told.append(BoundaryFile(path=path, sha256=sha256))
        else:
            unread.add(path)
    imported = {path for path in imported if path.endswith(LOADED)}
    rest = ({*report.imported} - imported) | ({*report.opened} - read)
    return tuple(told), tuple(sorted((rest - declared) | unread))


def own_places(unit: PlannedUnit) -> tuple[str, ...]:
    """Where packages and modules of a unit's files may begin: what of them is the tree's own."""
    found: set[str] = set()
    for path in _listed(unit):
        parts = path.split("/")
        found |= {"/".join(parts[:end]) for end in range(1, min(len(parts), OWN_DEPTH + 1))}
        if len(parts) == 1:
            found.add(path)
    return tuple(sorted(found))


def replaced(unit: PlannedUnit, report: ChildReport) -> Iterator[str]:
    """Files to which the evidence binds, and in whose place others were imported."""
    for path in sorted({*_listed(unit)} & {*report.replaced}):
        yield f"another file than {path} was imported in its place"


def _listed(unit: PlannedUnit) -> Iterator[str]:
    """Every path that the plan has of a unit."""
    for files in (unit.files, unit.tests, unit.boundary):
        yield from (file.path for file in files)


def _binds(plan: Plan, path: str) -> bool:
    return lies_in(plan.roots, path) or path.rpartition("/")[2] == "conftest.py"


def _sha256(root: Path, path: str) -> str:
    """Of a regular file, reached through no link; empty for anything else."""
    if (root / path).resolve() != root.resolve() / path:
        return ""
    try:
        with open_regular(root / path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, InputError):
        return ""
