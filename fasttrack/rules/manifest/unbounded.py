# SPDX-License-Identifier: Apache-2.0
"""FT307: a region asks for no more points than can be measured."""

from collections import Counter
from collections.abc import Iterator, Mapping

from fasttrack.case import Case, in_roots
from fasttrack.change.tree import Tree
from fasttrack.config import judged_or_head
from fasttrack.errors import FactUnavailable
from fasttrack.evidence.owed import variant_tables
from fasttrack.finding import Finding, Level
from fasttrack.manifest.consistency import Fault
from fasttrack.manifest.cost import Tables
from fasttrack.manifest.model import Manifest, Region
from fasttrack.manifest.points import (
    TooManyPoints,
    cost_by_axis,
    counts_by_region,
    witness_points,
)
from fasttrack.rules.manifest.comparisons import Comparisons
from fasttrack.rules.manifest.edited import ManifestRule, Subject, subjects
from fasttrack.rules.manifest.switch_points import concerned
from fasttrack.vocabulary import Kind

MAX_TRIED = 2000
"""Points of one kind up to which every axis is tried without; beyond, that takes seconds."""

Counts = Mapping[str, Counter[Kind]]
"""Region id to the number of points of each kind."""


class Unbounded(ManifestRule):
    """Regions whose tier owes more witness points than the policy allows."""

    id = "FT307"
    slug = "unbounded"
    title = "every region can be measured"
    level = Level.ROUTE
    refuses = (
        "A region of an added or edited manifest, or of one whose variant table changes, for "
        "which all kinds that its tier owes have more witness points together than "
        "`budgets.points_per_region`; it names the largest kind and, up to 2000 points, the axis "
        "that costs most. Whatever else a change touches of a path, points that can not be listed "
        "are reported: what it owes is then unknown."
    )
    why = "What nobody can measure is covered by exceptions, or by points that somebody picked."
    blind = (
        "How long one point takes. A `declared` region owes nothing and may be as wide as it likes."
    )
    fix = "fasttrack scope points --count; split the region, or take values off the axis named"

    def check(self, case: Case) -> Iterator[Finding]:
        """The limit where manifest or table change; points that can not be listed everywhere."""
        yield from super().check(case)
        for subject in subjects(case):
            if not (concerned(case, subject) or _touched(case, subject.head)):
                continue
            try:
                _, unlisted = _counted(case, subject.head, judged_or_head(case.change))
            except FactUnavailable as reason:
                if not concerned(case, subject):  # else it was reported with the limit
                    yield self.could_not_tell(reason, subject.path)
            else:
                yield from self.report(case, subject.path, unlisted)

    def subjects(self, case: Case) -> Iterator[Subject]:
        """Manifests that are edited themselves or through a variant table."""
        return (s for s in subjects(case) if concerned(case, s))

    def faults(self, case: Case, manifest: Manifest, tree: Tree) -> Iterator[Fault]:
        """Compares the points of every region with the limit."""
        counts, _ = _counted(case, manifest, tree)
        tables = variant_tables(case.change, manifest, tree)
        for i, region in enumerate(manifest.scope):
            yield from _too_many(case, manifest, i, counts[region.id], tables)


def _counted(case: Case, manifest: Manifest, tree: Tree) -> tuple[Counts, list[Fault]]:
    """Points per region and kind, and the kinds that have too many to be listed."""
    tables = variant_tables(case.change, manifest, tree)
    counts: dict[str, Counter[Kind]] = {region.id: Counter() for region in manifest.scope}
    unlisted: list[Fault] = []
    for kind in Kind:
        if not any(kind in _owed(case, region) for region in manifest.scope):
            continue
        try:
            cells = witness_points(manifest, kind, case.policy.hardware, tables)
        except TooManyPoints as error:
            saw = f"about {error.estimate} {kind.value} points, most for {error.worst_axis}"
            unlisted.append(Fault(("scope",), saw, "a scope that can be measured"))
            continue
        for name, count in counts_by_region(cells).items():
            if name:
                counts[name][kind] = count
    return counts, unlisted


def _touched(case: Case, manifest: Manifest) -> bool:
    """Whether the change may make evidence of the path stale."""
    changed = [entry.path for entry in case.entries]
    if any(in_roots(manifest, path) for path in changed):
        return True
    compare = Comparisons(changed)
    return any(compare.finds_any(p) for unit in manifest.units for p in (*unit.data, *unit.tests))


def _too_many(
    case: Case, manifest: Manifest, at: int, counts: Counter[Kind], tables: Tables
) -> Iterator[Fault]:
    region = manifest.scope[at]
    owed = {kind: counts[kind] for kind in _owed(case, region)}
    limit = case.policy.budgets.points_per_region
    if sum(owed.values()) <= limit:
        return
    largest = max(owed, key=lambda kind: owed[kind])
    most = ""
    if owed[largest] <= MAX_TRIED:
        # Alone, so that many regions past the limit cost no more than one that is as large.
        alone = manifest.model_copy(update={"scope": (region,)})
        axes = cost_by_axis(alone, region.id, largest, case.policy.hardware, tables)
        most = f"; {next(iter(axes))} costs most" if axes else ""
    saw = (
        f"region '{region.id}' asks for {sum(owed.values())} points, "
        f"{owed[largest]} of them {largest.value}{most}"
    )
    yield Fault(("scope", at), saw, f"at most {limit} points")


def _owed(case: Case, region: Region) -> tuple[Kind, ...]:
    return case.policy.tiers.get(region.tier, ())
