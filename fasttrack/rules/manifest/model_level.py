# SPDX-License-Identifier: Apache-2.0
"""Which regions of a manifest claim something about the whole model."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.manifest.model import Manifest, Region
from fasttrack.vocabulary import Kind


def model_level_regions(case: Case, manifest: Manifest) -> Iterator[tuple[int, Region]]:
    """Index and region, for those whose tier owes model evaluations."""
    for i, region in enumerate(manifest.scope):
        if Kind.MODEL_EVAL in case.policy.tiers.get(region.tier, ()):
            yield i, region
