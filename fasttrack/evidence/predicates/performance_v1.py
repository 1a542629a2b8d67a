# SPDX-License-Identifier: Apache-2.0
"""Claims: under the claim's conditions, one interleaved run gave these times on both sides.

Does not claim: anything about other conditions, or about another machine's clocks. The cell is the
claim's conditions; ratios are of medians, above 1 when the path is better. Needs a clock in another
process than the path's.
"""

from typing import ClassVar

from pydantic import Field

from fasttrack.evidence.predicates.common import Execution, Facts, Spread
from fasttrack.manifest.fields import Count, Positive
from fasttrack.manifest.words import Metric
from fasttrack.vocabulary import Kind

TYPE = "urn:fasttrack-decode:predicate:performance:v1"
KIND = Kind.PERFORMANCE

RATES = (Metric.DECODE_TOKENS_PER_S, Metric.P90_INTERACTIVITY)
"""Metrics of which more is better."""
RATIO_SLACK = 1.1
"""Factor by which the median of ratios may differ from the ratio of medians, either way."""


class PerformanceV1(Facts):
    """Both sides of one claim."""

    JUDGED_APART: ClassVar[bool] = True

    metric: Metric
    """What was measured; its name tells the unit."""
    ours: Spread
    """With the path."""
    baseline: Spread
    """With what it is compared with."""
    ratio: Spread
    """How many times better, of neighbouring pairs of the interleaved run."""
    pairs: Count
    """Neighbouring pairs."""
    bytes_moved: Positive | None = None
    """Bytes that one run must move at least; None for whole-model metrics."""
    acceptance_length: Positive | None = Field(default=None, ge=1)
    """Tokens per verify window, where there are draft tokens."""
    execution: Execution
    """What ran on the path's side."""

    def problems(self) -> list[str]:
        """Why the statement shows nothing; empty when it does."""
        spreads = (self.ours, self.baseline, self.ratio)
        odd = [problem for spread in spreads for problem in spread.problems()]
        if said := self.odd_ratio():
            odd.append(said)
        return [*odd, *self.execution.problems(), *self.forgeable()]

    def odd_ratio(self) -> str:
        """How the ratio can not be that of these sides; empty when it can.

        The median of ratios is nearly the ratio of medians in an interleaved run, and a side that
        won nearly every pair has the better median.
        """
        ours, baseline = self.ours.median, self.baseline.median
        expected = ours / baseline if self.metric in RATES else baseline / ours
        found = self.ratio.median
        if not expected / RATIO_SLACK <= found <= expected * RATIO_SLACK:
            return f"a ratio of {found:g} does not follow from the medians"
        if self.ratio.low > 1 >= expected:
            return f"a ratio of {found:g}, and medians that are no better than the baseline's"
        return ""

    def least_us(self, peak_tb_s: float) -> float | None:
        """Time below which a measurement is impossible, in microseconds; None where unknown.

        Args:
            peak_tb_s: data sheet bandwidth of one device.
        """
        return None if self.bytes_moved is None else self.bytes_moved / peak_tb_s * 1e-6
