# SPDX-License-Identifier: Apache-2.0
"""MXFP4 weights decoded by table: the values of `mxfp4.decode_mxfp4` in fewer passes.

A packed byte is looked up as one element that holds its two columns. Decoded matrices live for
one product only; the packed bytes are the one resident copy.
"""

from functools import lru_cache

import torch

from kimi_k3.mxfp4 import CODE_PAIRS, GROUP, scale_values


def expert_matrix(packed: torch.Tensor, scale: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The weights that packed codes and their scales stand for; exact.

    Args:
        packed: [..., K/2] u8.
        scale: [..., K/32] u8.
        dtype: float32 or float64.

    Returns:
        [..., K] in `dtype`.
    """
    pairs, scales = _tables(dtype, packed.device)
    columns = pairs.index_select(0, packed.flatten().int()).view(dtype)  # K numbers of each row
    factors = scales.index_select(0, scale.flatten().int())
    return (columns.view(-1, GROUP) * factors[:, None]).view(*packed.shape[:-1], -1)


@lru_cache
def _tables(dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Of each byte: its two columns as one element of twice the width, and its scale."""
    pair = {torch.float32: torch.int64, torch.float64: torch.complex128}[dtype]
    pairs = torch.tensor(CODE_PAIRS, dtype=dtype).to(device)  # [256, 2]
    scales = scale_values(torch.arange(256, device=device), dtype)
    return pairs.view(pair)[:, 0].contiguous(), scales
