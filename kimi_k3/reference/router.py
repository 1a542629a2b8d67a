# SPDX-License-Identifier: Apache-2.0
"""Which experts a row visits: exact, so that every rank and every backend picks the same.

Spec 2.6. Given the FP32 logits the choice is a function with one right answer:

    sc       = sigmoid(logit)                      correctly rounded
    key      = sc + bias                           one FP32 addition; for selection only
    ids      = the k largest keys                  equal keys: the lower id; NaN after everything
    weight_e = sc_e * scaling / (sum of the k sc + 1e-20)      the unbiased scores, in slot order

Without `norm_topk_prob` the denominator is left out.
"""

from decimal import Context as DecimalContext
from decimal import Decimal

import torch

from kimi_k3.config import K3Config

SUM_EPS = 1e-20  # keeps a row whose picked scores all underflow finite
DOUBT = 2.0**-48  # far above the error of a float64 sigmoid, about 2^-52
DIGITS = DecimalContext(prec=60)


def exact_sigmoid(x: torch.Tensor) -> torch.Tensor:
    """1 / (1 + exp(-x)), correctly rounded to FP32; to about one ulp in float64.

    Float64 decides all but the values within 2^-48 of a boundary between two FP32 numbers (about
    one in ten million); those are decided with 60 digits.
    """
    if x.dtype == torch.float64:
        return torch.sigmoid(x)
    wide = torch.sigmoid(x.double())
    rounded = wide.to(torch.float32)
    below, above = (wide * (1 - DOUBT)).float(), (wide * (1 + DOUBT)).float()
    for index in (below < above).nonzero().tolist():
        at = tuple(index)
        low, high = below[at].item(), above[at].item()
        rounded[at] = low if sigmoid_is_below(x[at].item(), (low + high) / 2) else high
    return rounded


def sigmoid_is_below(x: float, boundary: float) -> bool:
    """Whether sigmoid(x) < boundary, decided with 60 digits."""
    growth = DIGITS.exp(Decimal(-x))
    return DIGITS.divide(Decimal(1), DIGITS.add(1, growth)) < Decimal(boundary)


def pick(key: torch.Tensor, k: int) -> torch.Tensor:
    """Ids of the `k` best of `key` [M, E], best first: [M, k].

    The order is total: larger key first, then lower id; NaN is worse than any number.
    """
    by_key = torch.sort(key, dim=1, descending=True, stable=True).indices  # [M, E]
    missing = key.gather(1, by_key).isnan()  # [M, E] wherever the sort has put them
    numbers_first = torch.sort(missing.to(torch.int8), dim=1, stable=True).indices  # [M, E]
    return by_key.gather(1, numbers_first)[:, :k]


def route(
    config: K3Config, logits: torch.Tensor, bias: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids [M, k], best first, and weights [M, k] of logits [M, E] under correction `bias` [E]."""
    sc = exact_sigmoid(logits)  # [M, E]
    ids = pick(sc + bias.to(sc.dtype), config.num_experts_per_tok)  # [M, k]
    picked = sc.gather(1, ids)  # [M, k]
    weights = picked * config.routed_scaling_factor  # [M, k]
    if config.norm_topk_prob:
        weights = weights / (picked.sum(1, keepdim=True) + SUM_EPS)
    return ids, weights
