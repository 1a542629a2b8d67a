# SPDX-License-Identifier: Apache-2.0
"""How much evidence is enough: the policy's floors, and what a manifest asks for beyond them."""

import math

from fasttrack.manifest.model import Manifest
from fasttrack.policy.model import Floors, Policy


def floors_in_force(policy: Policy, manifest: Manifest) -> Floors:
    """The policy's floors, raised by the manifest's bars and by its evaluation tasks.

    A manifest can only ask for more: a bar below its floor changes nothing.
    """
    bars = {name: math.ceil(bar) for name, bar in manifest.evidence.bars.items()}
    floors = policy.floors.model_dump()
    for name, floor in floors.items():
        if isinstance(floor, int):
            floors[name] = max(floor, bars.get(name, 0))
    for task in manifest.evidence.evals:
        floors["eval_samples"] = max(floors["eval_samples"], task.samples_min)
        floors["eval_drop_max"] = min(floors["eval_drop_max"], task.drop_max)
    return Floors.model_construct(**floors)
