# SPDX-License-Identifier: Apache-2.0
"""FT308: every file in the roots belongs to a unit, and every unit has its files."""

from collections.abc import Iterable, Iterator

from fasttrack.case import Case, in_roots
from fasttrack.change.tree import Tree
from fasttrack.config import judged_or_head
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding, Level
from fasttrack.manifest.consistency import Fault, Loc
from fasttrack.manifest.model import Manifest
from fasttrack.policy.model import PathClass
from fasttrack.rules.manifest.comparisons import Comparisons
from fasttrack.rules.manifest.edited import ManifestRule, edited, subjects

JUDGES = frozenset({PathClass.TESTS, PathClass.REFERENCE, PathClass.CI})
"""Classes of files that judge code and therefore belong to no unit of it."""
Named = tuple[Loc, str, str]
"""Place in the manifest, what it is in words, and the pattern."""


class UnitFiles(ManifestRule):
    """Root files without a unit, and patterns without a file."""

    id = "FT308"
    slug = "unit-files"
    title = "units own every file in the roots, and nothing that is not there"
    level = Level.ROUTE
    refuses = (
        "After the merge: a file in the roots that no unit's `files` or `data` match, or that the "
        "policy classes as tests, reference or CI; a unit pattern that matches no file; a gate or "
        "required test file that is not there. Only what the change brings about: through the "
        "manifest, by adding a file, or by deleting the last one."
    )
    why = (
        "Evidence speaks of units. A file that belongs to none can change without any evidence "
        "becoming stale; a pattern without files stands for a test that never ran."
    )
    blind = "Whether the unit that owns a file is the right one; imports are followed anyway."
    fix = "name the file in its unit, or take the pattern out"

    def check(self, case: Case) -> Iterator[Finding]:
        """Whole manifests where they are edited, else what the change adds and deletes."""
        yield from super().check(case)
        whole = {subject.path for subject in edited(case)}
        for subject in subjects(case):
            if subject.path in whole:
                continue
            try:
                faults = list(_brought(case, subject.head))
                yield from self.report(case, subject.path, faults)
            except FactUnavailable as reason:
                yield self.could_not_tell(reason, subject.path)

    def faults(self, case: Case, manifest: Manifest, tree: Tree) -> Iterator[Fault]:
        """Everything, for one manifest and one tree."""
        compare = Comparisons(tree)
        yield from _without_unit(case, manifest, tree, compare)
        yield from _without_file(_named(manifest), compare)


def _brought(case: Case, manifest: Manifest) -> Iterator[Fault]:
    """What added and deleted files bring about under a manifest that stays."""
    changed = [e for e in case.entries if e.added or e.deleted]
    if not any(e.deleted or in_roots(manifest, e.path) for e in changed):
        return
    tree = judged_or_head(case.change)
    compare, gone = Comparisons(tree), Comparisons(e.path for e in changed if e.deleted)
    added = [e.path for e in changed if e.added and e.path in tree]
    yield from _without_unit(case, manifest, added, compare)
    lost = (named for named in _named(manifest) if gone.finds_any(named[2]))
    yield from _without_file(lost, compare)


def _without_unit(
    case: Case, manifest: Manifest, paths: Iterable[str], compare: Comparisons
) -> Iterator[Fault]:
    patterns = [p for unit in manifest.units for p in (*unit.files, *unit.data)]
    for path in paths:
        if not in_roots(manifest, path):
            continue
        if not compare.match_any(patterns, path):
            saw = f"`{path}` in the roots, which no unit owns"
            yield Fault(("units",), saw, "a unit for every file in the roots")
        elif case.path_class(path) in JUDGES:
            saw = f"`{path}` of class `{case.path_class(path).value}` in the roots"
            yield Fault(("code", "roots"), saw, "what judges the code outside its roots")


def _named(manifest: Manifest) -> Iterator[Named]:
    """Every path and pattern of a manifest that must match a file."""
    for i, path in enumerate(manifest.code.gate):
        yield ("code", "gate", i), "the gate file", path
    for i, unit in enumerate(manifest.units):
        for field in ("files", "data", "tests"):
            for j, pattern in enumerate(getattr(unit, field)):
                yield ("units", i, field, j), f"the {field} of unit '{unit.id}'", pattern
    for i, test in enumerate(manifest.evidence.tests):
        yield ("evidence", "tests", i), "the required test file", test.partition("::")[0]


def _without_file(named: Iterable[Named], compare: Comparisons) -> Iterator[Fault]:
    for loc, what, pattern in named:
        if not compare.finds_any(pattern):
            yield Fault(loc, f"{what} `{pattern}`, which matches no file", "files that are there")
