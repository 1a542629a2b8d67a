# SPDX-License-Identifier: Apache-2.0
"""Claims: under the claim's conditions, one interleaved run gave these times on both sides.

Does not claim: anything about other conditions, or about another machine's clocks. The cell is the
claim's conditions; ratios are of medians, above 1 when the path is better.
"""

from pydantic import Field

from fasttrack.evidence.predicates.common import Execution, Facts, Spread
from fasttrack.manifest.fields import Count, Positive
from fasttrack.manifest.words import Metric
from fasttrack.vocabulary import Kind

TYPE = "urn:fasttrack-decode:predicate:performance:v1"
KIND = Kind.PERFORMANCE

RATES = (Metric.DECODE_TOKENS_PER_S, Metric.P90_INTERACTIVITY)
"""Metrics of which more is better."""


class PerformanceV1(Facts):
    """Both sides of one claim."""

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
        ours, baseline = self.ours.median, self.baseline.median
        expected = ours / baseline if self.metric in RATES else baseline / ours
        if not 0.5 * expected <= self.ratio.median <= 2 * expected:
            odd.append(f"a ratio of {self.ratio.median:g} does not follow from the medians")
        return [*odd, *self.execution.problems()]

    def least_us(self, peak_tb_s: float) -> float | None:
        """Time below which a measurement is impossible, in microseconds; None where unknown.

        Args:
            peak_tb_s: data sheet bandwidth of one device.
        """
        return None if self.bytes_moved is None else self.bytes_moved / peak_tb_s * 1e-6
