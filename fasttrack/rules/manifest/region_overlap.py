# SPDX-License-Identifier: Apache-2.0
"""FT305: every configuration lies in at most one region of a manifest."""

from collections.abc import Iterator
from itertools import combinations

from fasttrack.case import Case
from fasttrack.change.tree import Tree
from fasttrack.finding import Level
from fasttrack.manifest.consistency import Fault
from fasttrack.manifest.model import Manifest
from fasttrack.manifest.region import box_of, overlaps
from fasttrack.rules.manifest.edited import ManifestRule


class RegionOverlap(ManifestRule):
    """Regions of one manifest that share a point."""

    id = "FT305"
    slug = "region-overlap"
    title = "the regions of a manifest are disjoint"
    level = Level.ROUTE
    refuses = "Two regions of an added or edited manifest that both admit some configuration."
    why = (
        "Such a point has two tiers and two sets of owed cells; whoever reads one region takes "
        "the other's promise for nothing, or for everything."
    )
    blind = "Regions of two manifests; their roots are disjoint (FT306), their scopes need not be."
    fix = "cut one of the regions so that the point named lies in the other alone"

    def faults(self, case: Case, manifest: Manifest, tree: Tree) -> Iterator[Fault]:
        """Compares every two regions."""
        boxes = [(i, region.id, box_of(region)) for i, region in enumerate(manifest.scope)]
        for (_, one, a), (i, other, b) in combinations(boxes, 2):
            point = overlaps(a, b)
            if point is not None:
                saw = f"regions '{one}' and '{other}' both admit {point}"
                yield Fault(("scope", i), saw, "disjoint regions")
