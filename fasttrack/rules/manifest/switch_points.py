# SPDX-License-Identifier: Apache-2.0
"""FT309: switch points are those of the variant table."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Tree
from fasttrack.errors import InputError
from fasttrack.finding import Level
from fasttrack.manifest.consistency import Fault, Loc
from fasttrack.manifest.model import Manifest, Unit
from fasttrack.manifest.variants import VariantTable, load_variant_table, switch_points
from fasttrack.rules.manifest.edited import ManifestRule, Subject, subjects


class SwitchPoints(ManifestRule):
    """Units whose switch points or architectures differ from their variant table."""

    id = "FT309"
    slug = "switch-points"
    title = "units switch variants where their tables say"
    level = Level.ROUTE
    refuses = (
        "A unit whose `switch_points` are not exactly the rows from which its variant table lets "
        "another variant take over, whose `archs` are not the table's, or whose table is missing "
        "or malformed; also when only the table changes."
    )
    why = (
        "The points on both sides of a switch are where a wrong variant shows. A switch point "
        "that the manifest does not name is never visited."
    )
    blind = "Whether the kernel dispatches by the table; the unit's tests show that."
    fix = "copy the rows of the table into `switch_points`"

    def subjects(self, case: Case) -> Iterator[Subject]:
        """Manifests that are edited themselves or through a variant table."""
        return (s for s in subjects(case) if concerned(case, s))

    def faults(self, case: Case, manifest: Manifest, tree: Tree) -> Iterator[Fault]:
        """Compares every unit that has a table."""
        for i, unit in enumerate(manifest.units):
            if unit.variants is None:
                continue
            side = tree.get(unit.variants)
            if side is None or not side.mode.startswith("100"):
                saw = f"no file `{unit.variants}`, the variant table of unit '{unit.id}'"
                yield Fault(("units", i, "variants"), saw, "the table's file")
                continue
            try:
                table = load_variant_table(case.change.blob(side), unit.variants)
            except InputError as error:
                saw = f"a malformed variant table, at {error.problems[0].where}"
                yield Fault(("units", i, "variants"), saw, error.problems[0].want)
                continue
            yield from _differences(unit, table, ("units", i))


def concerned(case: Case, subject: Subject) -> bool:
    """Whether the change touches a manifest or one of its variant tables."""
    paths = (subject.path, *(u.variants for u in subject.head.units if u.variants is not None))
    return any(case.change.entry(path) is not None for path in paths)


def _differences(unit: Unit, table: VariantTable, loc: Loc) -> Iterator[Fault]:
    rows = switch_points(table)
    if set(unit.switch_points) != set(rows):
        saw = f"switch points {_listed(unit.switch_points)} of unit '{unit.id}'"
        yield Fault((*loc, "switch_points"), saw, f"{_listed(rows)}, as in `{unit.variants}`")
    archs = {variant.arch for variant in table.variants}
    if set(unit.archs) != archs:
        saw = f"architectures {_listed(unit.archs)} of unit '{unit.id}'"
        yield Fault((*loc, "archs"), saw, f"{_listed(archs)}, as in `{unit.variants}`")


def _listed(values: object) -> str:
    items = sorted(values) if isinstance(values, tuple | set) else ()
    return ", ".join(str(item) for item in items) or "none"
