# SPDX-License-Identifier: Apache-2.0
"""Weights in the compute dtype, converted once."""

from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import torch

T = TypeVar("T")


def cast(weights: T, dtype: torch.dtype) -> T:
    """The same record with its numbers in `dtype`; MXFP4 bytes stay as they are.

    Tensors that have the dtype already are shared, not copied.
    """

    def convert(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.to(dtype) if value.is_floating_point() else value
        if is_dataclass(value):
            kind: Any = type(value)
            return kind(*(convert(getattr(value, field.name)) for field in fields(value)))
        return value

    converted: T = convert(weights)
    return converted
