# SPDX-License-Identifier: Apache-2.0
"""What regions and claims must say in themselves: reachable bounds and complete conditions."""

from collections.abc import Iterator
from itertools import pairwise

from fasttrack.manifest.consistency import Fault, Items, Loc, repeated
from fasttrack.manifest.model import Claim, Region, Workload
from fasttrack.manifest.words import Acceptance, Metric

_STEP = ("rows", "context")
_SERVING = ("isl", "osl", "batch", "draft_tokens")
NEEDED = {
    Metric.UNIT_TIME_US: _STEP,
    Metric.LAYER_TIME_US: _STEP,
    Metric.DECODE_TOKENS_PER_S: _SERVING,
    Metric.TTFT_MS: ("isl", "batch"),
    Metric.REQUEST_LATENCY_MS: _SERVING,
    Metric.P90_INTERACTIVITY: _SERVING,
}
"""Workload fields without which a metric says nothing."""
_STATED = ("acceptance_length", "acceptance_rates")
_TIMED = {Metric.UNIT_TIME_US, Metric.LAYER_TIME_US}


def region_faults(scope: Items[Region]) -> Iterator[Fault]:
    """Unique ids, ranges that run forwards, and no value that the other bounds make void."""
    yield from repeated((("scope", i, "id"), r.id, f"'{r.id}'") for i, r in scope.items())
    for i, region in scope.items():
        loc: Loc = ("scope", i)
        low, high = region.requests.min, region.requests.max
        if low > high:
            yield Fault((*loc, "requests"), f"min {low} above max {high}", "min <= max")
        for j, draft in enumerate(region.draft_tokens):
            if low * (1 + draft) > region.rows_max:
                saw = f"{draft}, with which {low} requests have {low * (1 + draft)} rows"
                want = f"at most 'rows_max', {region.rows_max} rows"
                yield Fault((*loc, "draft_tokens", j), saw, want)
        for j, dcp in enumerate(region.decode_context_parallel):
            if odd := [tp for tp in region.tensor_parallel if tp % dcp]:
                saw = f"{dcp}, which does not divide tensor_parallel {odd[0]}"
                want = "a divisor of every 'tensor_parallel'"
                fix = "put the combinations that exist into regions of their own"
                yield Fault((*loc, "decode_context_parallel", j), saw, want, fix)


def claim_faults(claims: Items[Claim], unit_ids: frozenset[str]) -> Iterator[Fault]:
    """Unique claims with complete conditions, and no comparison of unlike sides unmarked."""
    yield from repeated((("claims", i, "id"), c.id, f"'{c.id}'") for i, c in claims.items())
    yield from repeated(
        (("claims", i), (c.metric, c.of, c.workload, c.ours, c.baseline), f"conditions of '{c.id}'")
        for i, c in claims.items()
    )
    for i, claim in claims.items():
        loc: Loc = ("claims", i)
        yield from _subject_faults(claim, loc, unit_ids)
        yield from _workload_faults(claim, (*loc, "workload"))
        yield from _acceptance_faults(claim.workload, (*loc, "workload"))
        yield from _side_faults(claim, loc)


def _subject_faults(claim: Claim, loc: Loc, unit_ids: frozenset[str]) -> Iterator[Fault]:
    metric = claim.metric
    if metric not in _TIMED and claim.of is not None:
        yield Fault((*loc, "of"), f"'{claim.of}' with the metric '{metric}'", "no 'of'")
    if metric in _TIMED and claim.of is None:
        yield Fault(loc, f"no 'of' with the metric '{metric}'", "the unit or layer that is timed")
    if metric is Metric.UNIT_TIME_US and claim.of not in {None, *unit_ids}:
        want = f"one of the units {', '.join(sorted(unit_ids))}"
        yield Fault((*loc, "of"), f"'{claim.of}', which is no unit", want)


def _workload_faults(claim: Claim, loc: Loc) -> Iterator[Fault]:
    workload = claim.workload
    missing = [n for n in NEEDED[claim.metric] if getattr(workload, n) is None]
    if missing:
        saw = f"no {' and no '.join(repr(n) for n in missing)} with the metric '{claim.metric}'"
        yield Fault(loc, saw, "the full conditions")


def _acceptance_faults(workload: Workload, loc: Loc) -> Iterator[Fault]:
    """A source that fits the draft tokens, and how many of them it lets stand."""
    drafts, source = workload.draft_tokens or 0, workload.acceptance
    length, rates = workload.acceptance_length, workload.acceptance_rates
    if (drafts == 0) != (source is Acceptance.NONE):
        saw = f"'{source}' with {drafts or 'no'} draft tokens"
        want = "'none' without draft tokens, else 'synthetic' or 'measured'"
        yield Fault((*loc, "acceptance"), saw, want)
    stated = [name for name in _STATED if getattr(workload, name) is not None]
    if source is Acceptance.NONE and stated:
        yield Fault((*loc, stated[0]), f"'{stated[0]}' with the acceptance 'none'", "no such key")
    elif len(stated) > 1:
        yield Fault((*loc, stated[1]), f"both '{stated[0]}' and '{stated[1]}'", "one of them")
    elif source is Acceptance.SYNTHETIC and not stated:
        saw = f"'synthetic' without '{_STATED[0]}' or '{_STATED[1]}'"
        yield Fault((*loc, "acceptance"), saw, "one of them, or it may be any")
    if length is not None and drafts and length > 1 + drafts:
        saw = f"{length:g} tokens per window with {drafts} draft tokens"
        yield Fault((*loc, "acceptance_length"), saw, f"at most {1 + drafts}")
    if rates is not None and drafts and len(rates) != drafts:
        saw = f"{len(rates)} rates with {drafts} draft tokens"
        yield Fault((*loc, "acceptance_rates"), saw, "one for each draft token")
    if rates is not None and any(b > a for a, b in pairwise(rates)):
        want = "rates that never rise: a token stands only with all before it"
        yield Fault((*loc, "acceptance_rates"), "a rate above the one before it", want)


def _side_faults(claim: Claim, loc: Loc) -> Iterator[Fault]:
    ours, baseline = claim.ours, claim.baseline
    unlike = (ours.hardware, ours.gpu_count) != (baseline.hardware, baseline.gpu_count)
    if unlike and not claim.uncontrolled:
        saw = (
            f"{ours.gpu_count} x {ours.hardware} against "
            f"{baseline.gpu_count} x {baseline.hardware}: not a controlled comparison"
        )
        want = "equal sides, or 'uncontrolled: true' with a reason"
        yield Fault(loc, saw, want)
    if claim.uncontrolled != (claim.reason is not None):
        saw = "'uncontrolled' without a reason" if claim.uncontrolled else "a reason alone"
        yield Fault(loc, saw, "'uncontrolled: true' and a reason, or neither")
