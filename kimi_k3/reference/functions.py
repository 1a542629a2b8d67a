# SPDX-License-Identifier: Apache-2.0
"""Functions of one number, and sums in a stated order, with the same bits everywhere.

A vector library may round exp(x) differently in the last lanes of an array, so that a row's bits
would depend on how many rows stand beside it. Here each value is computed in float64 and rounded
once to the dtype of `x`: the last bit of float64 then all but never matters.
"""

from collections.abc import Iterable

import torch
from torch.nn.functional import softplus as torch_softplus

SOFTPLUS_LINEAR_ABOVE = 20.0  # there log1p(exp(x)) - x is below 2^-28


def exp(x: torch.Tensor) -> torch.Tensor:
    """e^x."""
    return torch.exp(x.double()).to(x.dtype)


def exp2(x: torch.Tensor) -> torch.Tensor:
    """2^x."""
    return torch.exp2(x.double()).to(x.dtype)


def log2(x: torch.Tensor) -> torch.Tensor:
    """The logarithm to base 2."""
    return torch.log2(x.double()).to(x.dtype)


def sigmoid(x: torch.Tensor) -> torch.Tensor:
    """1 / (1 + e^-x)."""
    return torch.sigmoid(x.double()).to(x.dtype)


def tanh(x: torch.Tensor) -> torch.Tensor:
    """The hyperbolic tangent."""
    return torch.tanh(x.double()).to(x.dtype)


def silu(x: torch.Tensor) -> torch.Tensor:
    """`x` sigmoid(x)."""
    return x * sigmoid(x)


def softplus(x: torch.Tensor) -> torch.Tensor:
    """log(1 + e^x), and x itself above 20."""
    return torch_softplus(x.double(), threshold=SOFTPLUS_LINEAR_ABOVE).to(x.dtype)


def ordered_sum(terms: Iterable[torch.Tensor]) -> torch.Tensor:
    """The terms added one after another, first to last; there is at least one."""
    first, *others = terms
    for term in others:
        first = first + term
    return first
