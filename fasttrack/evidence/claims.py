# SPDX-License-Identifier: Apache-2.0
"""Claims against measurements: does this statement bear out that claim?

    1. the claim is a comparison, and the statement holds together
    2. both speak of the same conditions, every one of them
    3. neither side is faster than its bytes can move
    4. the ratio stands out of its own spread
    5. it is the claimed one, or better

The first step that fails is the answer. A missing fact is "could not tell", never a confirmation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from fasttrack.evidence.predicates.common import Spread
from fasttrack.evidence.predicates.performance_v1 import PerformanceV1
from fasttrack.manifest.cells import Value
from fasttrack.manifest.model import Claim, Manifest
from fasttrack.manifest.points import witness_points
from fasttrack.manifest.words import Metric
from fasttrack.vocabulary import Kind

MIN_PAIRS = 3
"""With fewer pairs a ratio has no spread to stand out of."""
ACCEPTANCE_SLACK = 0.02
"""Share by which acceptance lengths may differ, of the sides of a run and from what is claimed: a
ratio carries all of it."""
_TIMED = (Metric.UNIT_TIME_US, Metric.LAYER_TIME_US)


class Bandwidth(Protocol):
    """What the policy knows about the memory of one device."""

    @property
    def peak(self) -> float:
        """Data sheet, in TB/s."""


class Hardware(Protocol):
    """What a record of the policy's hardware vocabulary must know."""

    @property
    def bandwidth_tb_s(self) -> Bandwidth | None:
        """None when nobody has measured it."""


class Outcome(StrEnum):
    """What a statement does to a claim."""

    BORNE_OUT = "borne-out"
    UNCONTROLLED = "uncontrolled"
    VOID = "void"
    OTHER_CONDITIONS = "other-conditions"
    UNKNOWN = "could-not-tell"
    IMPOSSIBLE = "impossible"
    NOISE = "inside-the-noise"
    LESS = "less-than-claimed"


@dataclass(frozen=True)
class Difference:
    """A condition that is not the same on both; None where one has no such condition."""

    claimed: Value | None
    measured: Value | None


@dataclass(frozen=True)
class Comparison:
    """The answer.

    Attributes:
        outcome: what the statement does to the claim.
        reasons: why, one sentence each.
        claimed: the claim's ratio.
        measured: the measured ratio with its spread.
        differences: conditions that differ, by axis.
    """

    outcome: Outcome
    reasons: tuple[str, ...]
    claimed: float
    measured: Spread
    differences: Mapping[str, Difference] = field(default_factory=dict)


def compare(
    manifest: Manifest, claim: Claim, measured: PerformanceV1, hardware: Mapping[str, Hardware]
) -> Comparison:
    """Holds a claim against a measurement.

    Args:
        manifest: the claim's; its units decide whether a time is a unit's or a layer's.
        claim: one of its claims.
        measured: content of a performance statement.
        hardware: the policy's hardware by id.
    """
    differences: Mapping[str, Difference] = {}
    if claim.uncontrolled:
        outcome, reasons = Outcome.UNCONTROLLED, ["the sides differ: it is no comparison"]
    elif reasons := _contradictions(measured):
        outcome = Outcome.VOID
    elif differences := _differences(manifest, claim, measured):
        outcome = Outcome.OTHER_CONDITIONS
        reasons = [
            f"{axis}: claimed {d.claimed!r}, measured {d.measured!r}"
            for axis, d in differences.items()
        ]
    else:
        outcome, reason = _judge(claim, measured, hardware)
        reasons = [reason]
    return Comparison(outcome, tuple(reasons), claim.ratio, measured.ratio, differences)


def too_fast(measured: PerformanceV1, peak_tb_s: float) -> str:
    """How a time is below what its bytes take; empty when it is not, or nobody knows the bytes.

    Args:
        measured: content of a performance statement.
        peak_tb_s: data sheet bandwidth of the device.
    """
    least = measured.least_us(peak_tb_s)
    fastest = min(measured.ours.low, measured.baseline.low)
    if measured.metric not in _TIMED or least is None or fastest >= least:
        return ""
    return f"{fastest:.3g} us, and its bytes alone take {least:.3g} us"


def _contradictions(measured: PerformanceV1) -> list[str]:
    problems = measured.problems()
    named = measured.cell.values.get("metric")
    if named != measured.metric:
        problems.append(f"the metric is {measured.metric}, the cell's {named!r}")
    return problems


def _differences(
    manifest: Manifest, claim: Claim, measured: PerformanceV1
) -> Mapping[str, Difference]:
    """Axes of the performance cell that are not equal."""
    alone = manifest.model_copy(update={"claims": (claim,)})
    (cell,) = witness_points(alone, Kind.PERFORMANCE, {}, {})
    found = measured.cell.values
    differences = {
        axis: Difference(cell.values.get(axis), found.get(axis))
        for axis in sorted(cell.values.keys() | found.keys())
        if cell.values.get(axis) != found.get(axis)
    }
    length = claimed_length(cell.values)
    if length is not None and not same_acceptance(measured.acceptance_length, length):
        seen = measured.acceptance_length
        run = None if seen is None else f"{seen:g} in the run"
        differences.setdefault("acceptance_length", Difference(f"{length:g}", run))
    return differences


def claimed_length(values: Mapping[str, Value]) -> float | None:
    """Tokens per verify window that a cell's conditions state; None where they state none.

    Raises:
        ValueError: they state it in other words than a manifest's.
    """
    if "acceptance_length" in values:
        return float(values["acceptance_length"])
    if "acceptance_rates" in values:
        return 1 + sum(float(rate) for rate in str(values["acceptance_rates"]).split(","))
    return None


def same_acceptance(measured: float | None, stated: float) -> bool:
    """Whether a run had an acceptance length, as nearly as a ratio needs it."""
    return measured is not None and abs(measured - stated) <= ACCEPTANCE_SLACK * stated


def _judge(
    claim: Claim, measured: PerformanceV1, hardware: Mapping[str, Hardware]
) -> tuple[Outcome, str]:
    """Steps 3 to 5, for equal conditions."""
    known = hardware.get(claim.ours.hardware)
    bandwidth = None if known is None else known.bandwidth_tb_s
    if bandwidth is None:
        return Outcome.UNKNOWN, f"the policy has no bandwidth of '{claim.ours.hardware}'"
    if measured.pairs < MIN_PAIRS:
        return Outcome.UNKNOWN, f"{measured.pairs} pairs of runs; {MIN_PAIRS} have a spread"
    if measured.metric in _TIMED:
        least = measured.least_us(bandwidth.peak)
        if least is None:
            return Outcome.UNKNOWN, "the statement does not say which bytes must move"
        if reason := too_fast(measured, bandwidth.peak):
            return Outcome.IMPOSSIBLE, reason
    return _judge_ratio(claim.ratio, measured.ratio)


def _judge_ratio(claimed: float, ratio: Spread) -> tuple[Outcome, str]:
    span = f"{ratio.median:.3g} ({ratio.low:.3g} to {ratio.high:.3g})"
    if ratio.low <= 1 <= ratio.high:
        return Outcome.NOISE, f"a ratio of {span} holds 1"
    if ratio.high < claimed:
        return Outcome.LESS, f"claimed {claimed:.3g}, measured {span}"
    return Outcome.BORNE_OUT, f"claimed {claimed:.3g}, measured {span}"
