# SPDX-License-Identifier: Apache-2.0
"""Whether one manifest lets more through than another.

A widening is anything in the head's manifest that lets through what the target branch's manifest
would not. New points and higher tiers are answered by evidence; everything else by a person.
What is not a widening owes nothing. Per field:

    name, model, weights   any change: evidence would be read as being about something else
    summary                never
    state                  revoked < suspended < active, upwards; day and reason never
    code                   a root outside the old roots; a gate file less (fewer files are read
                           as admission); a new wiring entry or a larger budget; any change of
                           the switch
    units                  a unit less; a file, data or test pattern less (less goes into digests)
                           unless one that is left holds all of it; an axis, architecture or
                           table less; another table; a switch point less, unless the same
                           table proves it right; a new unit without an axis or architecture
                           that some old unit has, once a region is above `declared`. New
                           patterns, axes and switch points of an old unit ask for more, never less
    scope                  a point that no old region admits; a point at a higher tier
    refuses                a refusal less, or another probe for it
    evidence               a test or task less, fewer samples, a larger drop, a lower bar
    toolchain              a package less, or another version: other compilers count
    claims                 a new claim, other conditions, a higher ratio, `reported` that becomes
                           `measured`, a comparison that was marked uncontrolled and no longer is
    lease                  a later end; another owner or backup; a removal step less
    sponsor                any change: somebody else answers
    assisted_by            never: it discloses and limits nothing
    waivers                a new waiver, or a later end

A manifest without a base is compared with nothing: all it has is new.
"""

from collections.abc import Iterator

from fasttrack.manifest.model import Manifest
from fasttrack.manifest.region import Budget, covered_by
from fasttrack.manifest.widened import Widening, WideningKind
from fasttrack.manifest.widened_code import code_widenings
from fasttrack.manifest.widened_terms import (
    claim_widenings,
    evidence_widenings,
    lease_widenings,
    refusal_widenings,
    toolchain_widenings,
    waiver_widenings,
)
from fasttrack.manifest.widened_units import unit_widenings
from fasttrack.vocabulary import Tier

__all__ = ["Widening", "WideningKind", "widenings"]


def widenings(base: Manifest | None, head: Manifest) -> tuple[Widening, ...]:
    """Everything that `head` lets through and `base` does not, in the order of the fields.

    Args:
        base: the manifest at the target branch's tip; None when there is none of that path.
        head: the manifest of the change.

    Raises:
        FactUnavailable: the regions overlap in too many ways to be compared.
    """
    return tuple(_widenings(base, head))


def _widenings(base: Manifest | None, head: Manifest) -> Iterator[Widening]:
    yield from _identity(base, head)
    yield from _state(base, head)
    yield from code_widenings(base.code if base else None, head.code)
    if base is not None:
        measured = any(region.tier is not Tier.DECLARED for region in base.scope)
        yield from unit_widenings(base.units, head.units, measured=measured)
    yield from _scope(base, head)
    if base is not None:
        yield from refusal_widenings(base.refuses, head.refuses)
        yield from evidence_widenings(base.evidence, head.evidence)
        yield from toolchain_widenings(base.toolchain, head.toolchain)
    yield from claim_widenings(base.claims if base else (), head.claims)
    yield from lease_widenings(base.lease if base else None, head.lease)
    if base is None or base.sponsor != head.sponsor:
        saw = f"the sponsor '{head.sponsor}'"
        want = f"'{base.sponsor}'" if base else "no sponsor yet"
        yield Widening(WideningKind.SPONSOR, saw, want)
    yield from waiver_widenings(base.waivers if base else (), head.waivers)


def _identity(base: Manifest | None, head: Manifest) -> Iterator[Widening]:
    if base is None:
        yield Widening(WideningKind.MANIFEST, f"the new manifest '{head.name}'", "no new path")
        return
    for name in ("name", "model"):
        old, new = getattr(base, name), getattr(head, name)
        if old != new:
            yield Widening(WideningKind.MODEL, f"{name} '{new}'", f"'{old}'")
    if base.weights != head.weights:
        new, old = (w.revision or w.digest for w in (head.weights, base.weights))
        yield Widening(WideningKind.MODEL, f"weights '{new}'", f"'{old}'")


def _state(base: Manifest | None, head: Manifest) -> Iterator[Widening]:
    new, old = head.state.status, base.state.status if base else None
    if old is not None and new.rank > old.rank:
        yield Widening(WideningKind.STATE, f"the state '{new}'", f"'{old}'")


def _scope(base: Manifest | None, head: Manifest) -> Iterator[Widening]:
    """One widening per region: a point that is new, else one that is at a new tier."""
    budget = Budget()
    old = base.scope if base else ()
    for region in head.scope:
        point = covered_by(region, old, budget)
        if point is not None:
            saw = f"the region '{region.id}' admits a new point: {point}"
            yield Widening(WideningKind.POINT, saw, "only points that the target branch admits")
            continue
        high = [r for r in old if r.tier.rank >= region.tier.rank]
        point = covered_by(region, high, budget)
        if point is not None:
            saw = f"the region '{region.id}' raises a point to '{region.tier}': {point}"
            yield Widening(WideningKind.TIER, saw, "at most the tier of the target branch")
