# SPDX-License-Identifier: Apache-2.0
"""MX formats: the experts' MXFP4 weights and the MXFP8 activations that kernels feed them.

Both share one scale byte b, worth 2^(b - 127), among 32 consecutive columns; b = 255 is NaN
(spec 1.3, 2.6).

    MXFP4   code bits s e e m; magnitudes 0, 0.5, 1, 1.5, 2, 3, 4, 6; two codes per byte,
            the low nibble is the even column
    MXFP8   e4m3, at most 448

Decoding is exact: a product of a code and a power of two has two significant bits, so float64,
float32 and bfloat16 all hold it. Only products from 2^128 on do not fit the last two; they become
infinite there.
"""

from enum import StrEnum
from itertools import pairwise

import torch
from torch import Tensor

GROUP = 32
SCALE_ONE = 127
"""The scale byte of 2^0; also that of padding, which must decode to finite zeros."""
SCALE_NAN = 255
SCALE_MAX = 254
MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
CODES = (*MAGNITUDES, *(-magnitude for magnitude in MAGNITUDES))
"""Value of each of the 16 codes; code 8 is -0.0."""
CODE_PAIRS = tuple((CODES[byte & 0xF], CODES[byte >> 4]) for byte in range(256))
"""The even and the odd column of each packed byte."""
E2M1_MAX_EXPONENT = 2
"""6 = 1.5 x 2^2."""
E4M3_MAX = 448.0
E4M3_MAX_EXPONENT = 8
"""448 = 1.75 x 2^8."""


class MxRule(StrEnum):
    """How the exponent of an MXFP8 scale follows from the group's largest magnitude (spec 2.6)."""

    AMAX = "power_of_two_amax"
    """The smallest with amax / 2^e <= 448: nothing saturates."""
    FLOOR = "floor"
    """floor(log2 amax) - 8: what exceeds 1.75 times a power of two saturates at 448."""


def unpack(packed: Tensor) -> Tensor:
    """Codes from bytes.

    Args:
        packed: [..., K/2] u8.

    Returns:
        [..., K] u8, each 0 to 15.
    """
    nibbles: Tensor = torch.stack((packed & 0xF, packed >> 4), dim=-1)  # [..., K/2, 2]
    return nibbles.flatten(-2)


def pack(codes: Tensor) -> Tensor:
    """Bytes from codes, [..., K] u8 to [..., K/2] u8; K is even."""
    packed: Tensor = codes[..., ::2] | (codes[..., 1::2] << 4)
    return packed


def scale_values(scale: Tensor, dtype: torch.dtype) -> Tensor:
    """2^(b - 127) of scale bytes, exactly; NaN for b = 255."""
    bits = scale.to(torch.int64)
    # The byte is the exponent field of an FP64 number after re-biasing, for every finite scale.
    value = ((bits - 127 + 1023) << 52).view(torch.float64)
    return torch.where(bits == SCALE_NAN, torch.nan, value).to(dtype)


def decode_mxfp4(packed: Tensor, scale: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The weights that packed codes and their scales stand for.

    Args:
        packed: [..., K/2] u8.
        scale: [..., K/32] u8.
        dtype: float64, float32 or bfloat16; all exact.

    Returns:
        [..., K] in `dtype`.
    """
    pairs = torch.tensor(CODE_PAIRS, dtype=dtype, device=packed.device)  # [256, 2]
    code_values = pairs[packed.to(torch.int32)].flatten(-2)  # [..., K]
    groups = code_values.unflatten(-1, (-1, GROUP))  # [..., K/32, 32]
    values: Tensor = groups * scale_values(scale, dtype).unsqueeze(-1)
    return values.flatten(-2)


def quantize_mxfp4(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rounds weights to MXFP4, to nearest, ties to the even code.

    The scale is the smallest power of two with amax / scale <= 6, so that nothing saturates; a
    group of zeros has scale byte 127. The sign of a value that rounds to zero stays.

    Args:
        x: [..., K], finite; K is a multiple of 32.

    Returns:
        packed [..., K/2] u8 and scale [..., K/32] u8.

    Raises:
        ValueError: a value is not finite.
    """
    if not bool(torch.isfinite(x).all()):
        raise ValueError("MXFP4 has no code for infinity and NaN")
    groups = x.to(torch.float64).unflatten(-1, (-1, GROUP))
    amax = groups.abs().amax(-1)
    mantissa, exponent = torch.frexp(amax)  # amax = mantissa x 2^exponent, mantissa in [0.5, 1)
    e = exponent - 1 - E2M1_MAX_EXPONENT + (mantissa > 0.75).to(exponent.dtype)
    scale = torch.where(amax == 0, SCALE_ONE, (e + 127).clamp(0, SCALE_MAX)).to(torch.uint8)
    scaled = groups / scale_values(scale, torch.float64).unsqueeze(-1)
    return pack(_nearest_code(scaled).flatten(-2)), scale


def _nearest_code(x: Tensor) -> Tensor:
    """The code of the nearest e2m1 value; at a midpoint the even code."""
    size = x.abs()
    code = torch.zeros_like(size, dtype=torch.uint8)
    for lower, (low, high) in enumerate(pairwise(MAGNITUDES)):
        middle = (low + high) / 2
        above = size > middle if lower % 2 == 0 else size >= middle
        code += above.to(torch.uint8)
    return code | (torch.signbit(x).to(torch.uint8) << 3)


def mxfp8_scale(x: Tensor, rule: MxRule) -> Tensor:
    """Scale bytes of activations.

    The exponent is read from the bits of the group's largest FP32 magnitude. Groups below
    2^-119, and those of zeros, have byte 0. NaNs do not count: they have a code of their own.

    Args:
        x: [..., K]; K is a multiple of 32.
        rule: see `MxRule`.

    Returns:
        [..., K/32] u8, 0 to 254.
    """
    groups = x.to(torch.float32).unflatten(-1, (-1, GROUP))
    amax = torch.where(groups.isnan(), 0, groups).abs().amax(-1)
    bits = amax.contiguous().view(torch.int32)
    biased = (bits >> 23) - E4M3_MAX_EXPONENT
    if rule is MxRule.AMAX:
        biased = biased + ((bits & 0x7FFFFF) > 0x600000).to(torch.int32)  # mantissa above 1.75
    return biased.clamp(0, SCALE_MAX).to(torch.uint8)


def quantize_mxfp8(x: Tensor, rule: MxRule) -> tuple[Tensor, Tensor]:
    """Activations as e4m3 codes and scale bytes; to nearest even, saturating at 448.

    Args:
        x: [..., K]; K is a multiple of 32.
        rule: see `MxRule`.

    Returns:
        codes [..., K] float8_e4m3fn and scale [..., K/32] u8. NaN stays NaN.
    """
    scale = mxfp8_scale(x, rule)
    groups = x.to(torch.float32).unflatten(-1, (-1, GROUP))
    scaled = groups / scale_values(scale, torch.float32).unsqueeze(-1)
    saturated = scaled.clamp(-E4M3_MAX, E4M3_MAX)  # some versions convert more to NaN
    return saturated.to(torch.float8_e4m3fn).flatten(-2), scale


def decode_mxfp8(codes: Tensor, scale: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The activations that e4m3 codes and their scales stand for.

    Args:
        codes: [..., K] float8_e4m3fn.
        scale: [..., K/32] u8.
        dtype: float64 is exact; float32 is down to 2^-149.

    Returns:
        [..., K] in `dtype`.
    """
    groups = codes.to(dtype).unflatten(-1, (-1, GROUP))
    values: Tensor = groups * scale_values(scale, dtype).unsqueeze(-1)
    return values.flatten(-2)


def fake_quantize_mxfp8(x: Tensor, rule: MxRule) -> Tensor:
    """`x` with what MXFP8 keeps of it, in the dtype of `x`."""
    codes, scale = quantize_mxfp8(x, rule)
    return decode_mxfp8(codes, scale, x.dtype)
