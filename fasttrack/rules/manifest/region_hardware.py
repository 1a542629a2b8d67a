# SPDX-License-Identifier: Apache-2.0
"""FT321: regions are something that their hardware can be."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Tree
from fasttrack.finding import Level
from fasttrack.manifest.consistency import Fault
from fasttrack.manifest.model import Manifest
from fasttrack.manifest.words import Ranks
from fasttrack.rules.manifest.edited import ManifestRule
from fasttrack.rules.manifest.model_level import model_level_regions


class RegionHardware(ManifestRule):
    """Real ranks beyond one domain, and virtual ranks that claim a deployment."""

    id = "FT321"
    slug = "region-hardware"
    title = "regions fit their hardware"
    level = Level.ROUTE
    refuses = (
        "In an added or edited manifest: a region of real ranks with more `tensor_parallel` than "
        "its hardware's `domain_gpus`; a region of virtual ranks with a tier that owes model "
        "evaluations."
    )
    why = (
        "Ranks talk through the interconnect of one domain; and one device with simulated peers "
        "computes no model, so nothing can be evaluated or served there."
    )
    blind = "Memory: whether the weights fit."
    fix = "lower `tensor_parallel`, or the tier"

    def faults(self, case: Case, manifest: Manifest, tree: Tree) -> Iterator[Fault]:
        """Looks at every region; unknown hardware is FT302's."""
        for i, region in enumerate(manifest.scope):
            most = max(region.tensor_parallel)
            for name in region.hardware if region.ranks is Ranks.REAL else ():
                known = case.policy.hardware.get(name)
                if known is not None and most > known.domain_gpus:
                    saw = f"tensor_parallel {most} of region '{region.id}' on '{name}'"
                    want = f"at most {known.domain_gpus}, the devices of one domain"
                    yield Fault(("scope", i, "tensor_parallel"), saw, want)
        for i, region in model_level_regions(case, manifest):
            if region.ranks is Ranks.VIRTUAL:
                saw = f"region '{region.id}' of virtual ranks claims '{region.tier}'"
                yield Fault(("scope", i, "tier"), saw, "`stress-tested` at most")
