# SPDX-License-Identifier: Apache-2.0
"""FT323: model-level tiers name what is evaluated."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Tree
from fasttrack.finding import Level
from fasttrack.manifest.consistency import Fault
from fasttrack.manifest.model import Manifest
from fasttrack.rules.manifest.edited import ManifestRule
from fasttrack.rules.manifest.model_level import model_level_regions


class EvalTasks(ManifestRule):
    """Model-level tiers without an evaluation task."""

    id = "FT323"
    slug = "eval-tasks"
    title = "model-level tiers name evaluation tasks"
    level = Level.ROUTE
    refuses = (
        "An added or edited manifest in which a region claims a tier that owes model evaluations "
        "while `evidence.evals` names no task."
    )
    why = "Whoever runs the evaluation would pick the task, after seeing which ones pass."
    blind = "Whether the tasks are hard enough to notice a wrong kernel."
    fix = "name the tasks, their samples and their largest drop under `evidence.evals`"

    def faults(self, case: Case, manifest: Manifest, tree: Tree) -> Iterator[Fault]:
        """Looks for tasks once, for every region that needs them."""
        if manifest.evidence.evals:
            return
        for i, region in model_level_regions(case, manifest):
            saw = f"region '{region.id}' claims '{region.tier}' and no eval task is named"
            yield Fault(("scope", i, "tier"), saw, "tasks under `evidence.evals`")
