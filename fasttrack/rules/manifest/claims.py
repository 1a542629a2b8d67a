# SPDX-License-Identifier: Apache-2.0
"""FT313: performance claims can be judged, and lie in the scope."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Tree
from fasttrack.finding import Level
from fasttrack.manifest.consistency import Fault, Loc
from fasttrack.manifest.model import Claim, Manifest, Region, Workload
from fasttrack.manifest.region import Box, box_of
from fasttrack.manifest.words import ClaimStatus, Metric, Ranks
from fasttrack.policy.model import Policy
from fasttrack.rules.manifest.edited import ManifestRule
from fasttrack.vocabulary import Kind, Tier

ONE_RANK = frozenset({Metric.UNIT_TIME_US, Metric.LAYER_TIME_US})
"""Metrics at one rank's shapes; all others speak of a deployment."""


class Claims(ManifestRule):
    """Claims on hardware that nobody knows or has measured, and claims outside the scope."""

    id = "FT313"
    slug = "claims"
    title = "performance claims can be judged"
    level = Level.ROUTE
    refuses = (
        "In an added or edited manifest, a claim whose hardware the policy does not know; a "
        "measured claim on hardware without bandwidth; a controlled claim whose conditions lie in "
        "no region, or a measured one only in `declared` regions; a region whose tier owes "
        "performance and that no controlled claim speaks of. That sides differ unmarked, or "
        "conditions are missing, is FT301's."
    )
    why = (
        "A figure outside the scope advertises what the path refuses to run; one without a "
        "bandwidth can not be told from an impossible one. A tier that owes performance without "
        "any claim would owe nothing."
    )
    blind = "Whether the figure is true; FT5xx compares it with signed measurements."
    fix = "claim what a region holds, or add the hardware's bandwidth to the policy first"

    def faults(self, case: Case, manifest: Manifest, tree: Tree) -> Iterator[Fault]:
        """Looks at every claim."""
        for i, claim in enumerate(manifest.claims):
            yield from _hardware(case.policy, claim, ("claims", i))
            if not claim.uncontrolled:
                yield from _scope(manifest, claim, ("claims", i))
        yield from _unclaimed(case.policy, manifest)


def _hardware(policy: Policy, claim: Claim, loc: Loc) -> Iterator[Fault]:
    sides = {claim.baseline.hardware: "baseline", claim.ours.hardware: "ours"}
    for name, side in sides.items():
        known = policy.hardware.get(name)
        if known is None:
            saw = f"the claim '{claim.id}' on '{name}', which the policy does not know"
            yield Fault((*loc, side, "hardware"), saw, f"one of {', '.join(policy.hardware)}")
        elif claim.status is ClaimStatus.MEASURED and known.bandwidth_tb_s is None:
            saw = f"the measured claim '{claim.id}' on '{name}', which has no bandwidth"
            yield Fault((*loc, side, "hardware"), saw, "hardware with a measured bandwidth")


def _scope(manifest: Manifest, claim: Claim, loc: Loc) -> Iterator[Fault]:
    tiers = [region.tier for region in manifest.scope if _holds(region, claim)]
    if not tiers:
        saw = f"the claim '{claim.id}', whose conditions lie in no region"
        yield Fault(loc, saw, "conditions that the scope admits")
    elif claim.status is ClaimStatus.MEASURED and set(tiers) == {Tier.DECLARED}:
        saw = f"the measured claim '{claim.id}' in a region where nothing has run"
        yield Fault((*loc, "status"), saw, "a region above `declared`, or 'reported'")


def _unclaimed(policy: Policy, manifest: Manifest) -> Iterator[Fault]:
    """Regions that owe performance, of which without a claim nothing would be measured."""
    controlled = [claim for claim in manifest.claims if not claim.uncontrolled]
    for i, region in enumerate(manifest.scope):
        owes = Kind.PERFORMANCE in policy.tiers.get(region.tier, ())
        if owes and not any(_holds(region, claim) for claim in controlled):
            saw = f"region '{region.id}' claims '{region.tier}' and no controlled claim is in it"
            yield Fault(("scope", i, "tier"), saw, "a claim whose conditions the region admits")


def _holds(region: Region, claim: Claim) -> bool:
    """Whether a region holds the conditions of our side of a claim."""
    box, ours = box_of(region), claim.ours
    if ours.hardware not in region.hardware:
        return False
    if region.ranks is Ranks.REAL:
        fits = ours.gpu_count in region.tensor_parallel
    else:
        fits = ours.gpu_count == 1 and claim.metric in ONE_RANK
    load = claim.workload
    longest = max(load.context or 0, (load.isl or 0) + (load.osl or 0))
    return fits and longest <= region.context_max and _holds_step(box, load)


def _holds_step(box: Box, load: Workload) -> bool:
    """Whether some number of requests at the claim's draft length makes its rows or batch."""
    drafts = [d for d in box.drafts_in_use() if load.draft_tokens in {None, d}]
    for draft in drafts:
        low, high = box.requests_at(draft)
        requests = load.batch
        if load.rows is not None:
            requests, rest = divmod(load.rows, 1 + draft)
            if rest or load.batch not in {None, requests}:
                continue
        if requests is None or low <= requests <= high:
            return True
    return False
