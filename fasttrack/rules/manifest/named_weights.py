# SPDX-License-Identifier: Apache-2.0
"""FT316: evaluations speak of weights that exist."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Tree
from fasttrack.finding import Level
from fasttrack.manifest.consistency import Fault
from fasttrack.manifest.model import Manifest
from fasttrack.rules.manifest.edited import ManifestRule
from fasttrack.rules.manifest.model_level import model_level_regions


class NamedWeights(ManifestRule):
    """Model-level tiers over the placeholder that stands for no weights."""

    id = "FT316"
    slug = "named-weights"
    title = "model-level tiers name the weights"
    level = Level.ROUTE
    refuses = (
        "An added or edited manifest in which a region claims a tier that owes model evaluations "
        "while `weights` is the all-zero placeholder that a first manifest may carry."
    )
    why = "An evaluation without named weights says nothing about the weights that are served."
    blind = "Whether the weights exist; the evaluation's statement names what it loaded."
    fix = "write the revision or digest of the weights, or a lower tier"

    def faults(self, case: Case, manifest: Manifest, tree: Tree) -> Iterator[Fault]:
        """Looks at the weights once, for every region that needs them."""
        named = (manifest.weights.revision or manifest.weights.digest or "").rpartition(":")[2]
        if set(named) != {"0"}:
            return
        for _, region in model_level_regions(case, manifest):
            saw = f"region '{region.id}' claims '{region.tier}' without named weights"
            yield Fault(("weights",), saw, "a revision or digest of the weights")
