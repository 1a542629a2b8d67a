# SPDX-License-Identifier: Apache-2.0
"""Two sides compared, the same way for every format: spreads, intervals, neighbouring pairs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal, Self

from fasttrack.errors import InputError, Problem
from fasttrack.evidence.claims import MIN_PAIRS
from fasttrack.evidence.predicates.common import Interval, Spread

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Scored:
    """A score of one side.

    Attributes:
        score: from 0 to 1.
        stderr: its standard error, as the tool states it.
        samples: answers that it is the mean of.
    """

    score: float
    stderr: float
    samples: int

    @classmethod
    def checked(cls, score: float, stderr: float, samples: int, metric: str, where: str) -> Self:
        """A score that a tool states.

        Raises:
            InputError: it is none of which 1 is the best.
        """
        if not 0 <= score <= 1 or stderr < 0:
            saw = f"`{metric}` {score:g} with a standard error of {stderr:g}"
            raise InputError.one(where, saw, "a score from 0 to 1")
        return cls(score, stderr, samples)


@dataclass(frozen=True)
class Sample:
    """One run of one side.

    Attributes:
        side: whose.
        value: of the metric.
        where: the run, for messages.
    """

    side: Literal["ours", "baseline"]
    value: float
    where: str


@dataclass(frozen=True)
class Pairs:
    """Both sides of an interleaved run."""

    ours: Spread
    baseline: Spread
    ratio: Spread
    count: int

    def fields(self) -> dict[str, Any]:
        """As the performance predicate names them."""
        return {
            "ours": self.ours,
            "baseline": self.baseline,
            "ratio": self.ratio,
            "pairs": self.count,
        }


def spread(samples: Sequence[float]) -> Spread:
    """Median, 10th and 90th percentile, with linear interpolation between neighbours."""
    ordered = sorted(samples)
    low, median, high = (_percentile(ordered, share) for share in (0.1, 0.5, 0.9))
    return Spread(median=median, low=low, high=high, samples=len(ordered))


def drop_interval(score: Scored, baseline: Scored) -> Interval:
    """Confidence interval of baseline - score.

    The standard errors of both sides are added as those of independent samples: sqrt(a^2 + b^2),
    times the normal quantile. Both sides answer the same questions, so that the true error is
    rather smaller; the interval errs to the wide side. A standard error below 1.5 / n is taken as
    1.5 / n: where all answers are right the tool reports 0, while the rule of three allows for
    3 / n wrong ones.
    """
    errors = [max(side.stderr, 1.5 / side.samples) for side in (score, baseline)]
    half = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * math.hypot(*errors)
    drop = baseline.score - score.score
    return Interval(low=drop - half, high=drop + half, confidence=CONFIDENCE)


def paired(samples: Sequence[Sample], more_is_better: bool, where: str) -> Pairs:
    """Pairs up an interleaved run: samples 0 and 1, 2 and 3, ... are neighbours.

    Args:
        samples: in the order in which they ran.
        more_is_better: whether the metric is a rate, or else a time.
        where: for messages.

    Raises:
        InputError: a pair holds one side twice, one is left over, or there are too few.
    """
    couples = [samples[i : i + 2] for i in range(0, len(samples), 2)]
    problems = [
        Problem(c[0].where, f"`{c[0].side}` twice in a row", "one run of each side, in turns")
        for c in couples
        if len({sample.side for sample in c}) < 2
    ]
    if not problems and len(couples) < MIN_PAIRS:
        saw = f"{len(couples)} pairs of runs"
        problems = [Problem(where, saw, f"an interleaved run of at least {MIN_PAIRS}")]
    if problems:
        raise InputError(problems[:20])
    by_side = {side: [s.value for s in samples if s.side == side] for side in ("ours", "baseline")}
    better = [ours / base for ours, base in zip(by_side["ours"], by_side["baseline"], strict=True)]
    ratio = better if more_is_better else [1 / value for value in better]
    return Pairs(spread(by_side["ours"]), spread(by_side["baseline"]), spread(ratio), len(couples))


def _percentile(ordered: Sequence[float], share: float) -> float:
    at = share * (len(ordered) - 1)
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    between = ordered[below] + (at - below) * (ordered[above] - ordered[below])
    return min(between, ordered[above])  # rounding must not put percentiles out of order
