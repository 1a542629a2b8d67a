# SPDX-License-Identifier: Apache-2.0
"""FT320: units are built for the hardware that the scope names."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Tree
from fasttrack.finding import Level
from fasttrack.manifest.consistency import Fault
from fasttrack.manifest.model import Manifest
from fasttrack.rules.manifest.edited import ManifestRule

GPU = "sm_"
"""How the architectures begin that kernels are built for; no other can stand in `archs`."""


class UnitArchs(ManifestRule):
    """Architectures without hardware, and hardware without a build."""

    id = "FT320"
    slug = "unit-archs"
    title = "units are built for the scope's hardware"
    level = Level.ROUTE
    refuses = (
        "In an added or edited manifest: a unit's architecture that no hardware of any region "
        "has, and a GPU of a region for whose architecture a unit with kernels is not built. "
        "Units without `archs` have no kernels and run anywhere; on a processor no kernel runs."
    )
    why = (
        "A kernel that no region runs is shipped unmeasured; a region without a kernel admits "
        "what can only fall back."
    )
    blind = "Whether a kernel of a compatible architecture would run there."
    fix = "let `archs` and the regions' hardware name the same architectures"

    def faults(self, case: Case, manifest: Manifest, tree: Tree) -> Iterator[Fault]:
        """Compares each unit with all regions; unknown hardware is FT302's."""
        known = {
            name: case.policy.hardware[name].arch
            for region in manifest.scope
            for name in region.hardware
            if name in case.policy.hardware
        }
        for i, unit in enumerate(manifest.units):
            for j, arch in enumerate(unit.archs):
                if arch not in known.values():
                    saw = f"unit '{unit.id}' for {arch}, which no region's hardware has"
                    yield Fault(("units", i, "archs", j), saw, "an architecture of the scope")
            for name, arch in known.items():
                if unit.archs and arch.startswith(GPU) and arch not in unit.archs:
                    saw = f"unit '{unit.id}' without {arch}, although a region names '{name}'"
                    yield Fault(("units", i, "archs"), saw, f"{arch} among its 'archs'")
