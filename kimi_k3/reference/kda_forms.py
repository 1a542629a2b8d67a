# SPDX-License-Identifier: Apache-2.0
"""The KDA recurrence twice more: as a matrix product, and as one fold of recorded deltas.

Spec 2.3 and 2.4. For one head, with decay a_t = exp(g_t) and L_t = g_1 + ... + g_t:

    matrix form       S_t = S_{t-1} Diag(a_t) (I - beta_t k_t k_t^T) + beta_t v_t k_t^T
    deferred commit   S_n = S_0 Diag(e^{L_n}) + sum_{t<=n} u_t (k_t * e^{L_n - L_t})^T

The second form lets a verify step leave its start state alone, keep u, k and g of its tokens,
and fold the accepted ones afterwards. It uses differences of L and never divides by e^L, which
underflows within a few hundred tokens.
"""

import torch


def matrix_step(
    s: torch.Tensor, k: torch.Tensor, v: torch.Tensor, g: torch.Tensor, beta: torch.Tensor
) -> torch.Tensor:
    """One token of one head by the matrix form.

    Args:
        s: S [value, key].
        k: [key] normalised.
        v: [value].
        g: [key] log of the decay.
        beta: scalar.

    Returns:
        The new S [value, key].
    """
    decay = torch.diag(torch.exp(g))  # [key, key]
    identity = torch.eye(len(k), dtype=s.dtype, device=s.device)  # [key, key]
    forget = identity - beta * torch.outer(k, k)  # [key, key]
    return s @ decay @ forget + beta * torch.outer(v, k)  # [value, key]


def commit_deltas(
    s: torch.Tensor, u: torch.Tensor, k: torch.Tensor, g: torch.Tensor
) -> torch.Tensor:
    """Fold the accepted tokens of one head into the state a verify step started from.

    Args:
        s: S_0 [value, key].
        u: [n, value] the deltas, hook `kda.u`.
        k: [n, key] hook `kda.k`.
        g: [n, key] hook `kda.log_decay`.

    Returns:
        S_n [value, key]; `s` itself for n = 0.
    """
    left = g.flip(0).cumsum(0).flip(0) - g  # [n, key] L_n - L_t: the decay still to come
    total = g.sum(0)  # [key] L_n
    return s * torch.exp(total) + u.T @ (k * torch.exp(left))  # [value, key]
