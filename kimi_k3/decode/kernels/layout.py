# SPDX-License-Identifier: Apache-2.0
"""Whether a tensor lies in memory as code expects it, which has dtypes and strides compiled in."""

import torch

from kimi_k3.decode.kernels.shapes import Operand

DTYPES = {
    "bf16": torch.bfloat16,
    "fp32": torch.float32,
    "int32": torch.int32,
    "int64": torch.int64,
}


def misfit(operand: Operand, tensor: torch.Tensor) -> str:
    """What is wrong with a tensor for an operand; empty if nothing is.

    The strides of axes with one element do not matter, nor how many rows there are.
    """
    want, lies = operand.strides, tuple(tensor.stride())
    same_rank = len(want) == len(lies)
    apart = any(
        extent > 1 and stride != expected
        for extent, stride, expected in zip(tensor.shape, lies, want, strict=False)
    )
    if tensor.dtype is DTYPES[operand.dtype] and same_rank and not apart:
        return ""
    return f"{operand.name} is {tensor.dtype} {lies}; want {operand.dtype} {want}"
