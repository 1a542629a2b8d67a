# SPDX-License-Identifier: Apache-2.0
"""From logits to tokens.

Most likely tokens and the check for numbers are found where the logits are, and read back in one
transfer. A distribution is computed on the host in float64, one row at a time and only for rows
that are drawn from: a scan over the vocabulary on a GPU may add in another order at each call, and
all ranks must draw the same token.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from kimi_k3.engine.draws import Floats
from kimi_k3.engine.request import Sampling

RANKED_AT_FIRST = 1024
"""Tokens among which top-p looks for its mass before it sorts the whole vocabulary."""


class StepLogits:
    """The logits [n, V] of one step, as the host reads them.

    Attributes:
        best: [n] the most likely token of each row, the lowest id among equals.
        finite: [n] whether every logit of the row is a finite number.
    """

    def __init__(self, logits: torch.Tensor) -> None:
        self._logits = logits
        finite = logits.isfinite().all(dim=1)
        best, numbers = torch.stack([logits.argmax(dim=1), finite.long()]).tolist()
        self.best: list[int] = best
        self.finite: list[bool] = [number == 1 for number in numbers]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.best)

    def probabilities(self, row: int, sampling: Sampling) -> Floats:
        """[V] the distribution that `sampling`, not a greedy one, draws from."""
        logits = self._logits[row].to(device="cpu", dtype=torch.float64).numpy()
        return probabilities(logits, sampling)


def probabilities(logits: Floats, sampling: Sampling) -> Floats:
    """The distribution [V] of finite logits [V] at a temperature above 0; it adds up to 1."""
    # The largest becomes 0 before the division, so that no temperature makes it infinite.
    with np.errstate(over="ignore"):
        weights = np.exp((logits - logits.max()) / sampling.temperature)
    if sampling.top_k or sampling.top_p < 1.0:
        weights = _most_likely(logits, weights, sampling)
    return np.asarray(weights / weights.sum())


def _most_likely(logits: Floats, weights: Floats, sampling: Sampling) -> Floats:
    """`weights` [V] with zeros for the tokens that top-k and top-p leave out."""
    order = _ranked(logits, sampling.top_k or RANKED_AT_FIRST)
    if sampling.top_p < 1.0:
        mass = sampling.top_p * (weights[order] if sampling.top_k else weights).sum()
        if not sampling.top_k and weights[order].sum() < mass:
            order = _ranked(logits, len(logits))
        order = order[: 1 + np.searchsorted(weights[order].cumsum(), mass)]
    kept = np.zeros_like(weights)
    kept[order] = weights[order]
    return kept


def _ranked(logits: Floats, count: int) -> NDArray[np.intp]:
    """The `count` most likely tokens, the most likely first, lower ids first among equals."""
    tokens = np.arange(len(logits))
    if count < len(logits):  # only what is left is sorted
        least = np.partition(logits, -count)[-count]
        above, equal = np.flatnonzero(logits > least), np.flatnonzero(logits == least)
        tokens = np.concatenate([above, equal[: count - len(above)]])
        tokens.sort()
    return tokens[np.argsort(-logits[tokens], kind="stable")]


def choose(weights: Floats, draw: float) -> int:
    """The token at which the running sum of `weights` [V] passes `draw` of their total.

    A token is chosen with its share of the total; one of weight 0 never is.

    Args:
        weights: not negative, at least one above 0.
        draw: in (0, 1), with at most 48 bits.
    """
    below = weights.cumsum()
    return int(np.searchsorted(below, draw * below[-1], side="right"))
