# SPDX-License-Identifier: Apache-2.0
"""The tier that evidence bears out, per region: what the runtime and the pages speak of.

A claim is what a manifest says. It is effective up to the highest tier of which every owed kind is
covered at every cell of the region, and at the cells of no region (machine code that is shipped for
hardware outside the scope, performance claims), which the manifest as a whole owes. A cell that
cannot be listed or judged is not covered. Evidence beyond the claim raises nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date

from fasttrack.case import Config
from fasttrack.change.change import Change
from fasttrack.change.former import PastUnavailable
from fasttrack.errors import FactUnavailable
from fasttrack.evidence.gathered import gather, judged_evidence
from fasttrack.evidence.inputs import InputGraph
from fasttrack.evidence.owed import variant_tables
from fasttrack.evidence.store import Stored
from fasttrack.evidence.surroundings import Surroundings
from fasttrack.evidence.terms import Terms
from fasttrack.manifest.model import Manifest, Region
from fasttrack.manifest.points import TooManyPoints, witness_points
from fasttrack.policy.model import Policy
from fasttrack.vocabulary import Kind, Tier

Lack = tuple[str, Kind]
"""A region (empty for the manifest as a whole) and a kind that is not covered there."""


def effective_tiers(
    revision: Change, config: Config, manifest: Manifest, day: date
) -> Mapping[str, Tier]:
    """Region to effective tier, at most the tier that it claims.

    Args:
        revision: one revision alone, see `read_revision`: the files that evidence must be of, and
            the evidence.
        config: policy and keys.
        manifest: whose regions; it need not be the revision's.
        day: the UTC day to judge at.

    Raises:
        FactUnavailable: the revision's files can not be listed, or this clone lacks the history
            that a statement is judged by.
    """
    claimed = max((region.tier for region in manifest.scope), key=lambda tier: tier.rank)
    trees = () if claimed is Tier.DECLARED else (revision.base,)
    stored = gather(revision, trees, config.folder, None)
    if not stored:
        return {region.id: Tier.DECLARED for region in manifest.scope}
    kinds = config.policy.tiers.get(claimed, ())
    terms = Terms(config.policy, manifest, day, Surroundings(revision, revision.base))
    lacking = set(_lacking(revision, terms, config, stored, kinds))
    return {r.id: _highest(r, config.policy, lacking) for r in manifest.scope}


def _lacking(
    revision: Change, terms: Terms, config: Config, stored: Iterable[Stored], kinds: Iterable[Kind]
) -> Iterator[Lack]:
    manifest, policy = terms.manifest, terms.policy
    tables = variant_tables(revision, manifest, revision.base)
    listed = []
    for kind in kinds:
        try:
            listed.append(witness_points(manifest, kind, policy.hardware, tables))
        except (TooManyPoints, FactUnavailable):
            yield "", kind
    cells = [cell for found in listed for cell in found]
    asked = {cell.id for cell in cells}
    evidence = judged_evidence(stored, asked, policy.trust, terms.day)
    graph = InputGraph(revision, revision.base, manifest, config)
    for cell in cells:
        try:
            covered = evidence.answer(cell, terms, graph.unit_inputs).covers
        except PastUnavailable:  # a lower tier would be said by the clone, not by the evidence
            raise
        except FactUnavailable:
            covered = False
        if not covered:
            yield cell.region, cell.kind


def _highest(region: Region, policy: Policy, lacking: set[Lack]) -> Tier:
    reached = Tier.DECLARED
    for tier in list(Tier)[1 : region.tier.rank + 1]:
        owed = policy.tiers.get(tier, ())
        if any((place, kind) in lacking for place in (region.id, "") for kind in owed):
            break
        reached = tier
    return reached
