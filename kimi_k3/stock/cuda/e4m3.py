# SPDX-License-Identifier: Apache-2.0
"""FP8 e4m3 bytes inside Triton kernels, as `kimi_k3.reference.state` has them.

Compiled code uses the hardware's conversions. Under Triton's interpreter (COMPILED false), whose
conversions truncate, the same bytes come from arithmetic.
"""

import triton
import triton.language as tl


@triton.jit
def encode(x, scale, COMPILED: tl.constexpr):
    """Bytes of FP32 `x` / `scale`: to nearest even, saturating at 448, 0x7F for NaN."""
    quotient = tl.div_rn(x, tl.full(x.shape, 1.0, tl.float32) * scale)
    missing = quotient != quotient  # noqa: PLR0124  only a NaN differs from itself
    number = tl.where(missing, 0.0, quotient)
    bounded = tl.minimum(tl.maximum(number, -448.0), 448.0)
    if COMPILED:
        byte = bounded.to(tl.float8e4nv).to(tl.uint8, bitcast=True)
    else:
        size = tl.maximum(tl.abs(bounded), 0.015625)  # 2^-6; below it codes are equally spaced
        exponent = (size.to(tl.int32, bitcast=True) >> 23) - 127
        quantum = ((exponent - 3 + 127) << 23).to(tl.float32, bitcast=True)
        steps = tl.abs(bounded) / quantum + 8388608.0 - 8388608.0  # to an integer, ties to even
        code = (exponent + 6) * 8 + steps.to(tl.int32)
        sign = (bounded.to(tl.int32, bitcast=True) >> 24) & 0x80
        byte = (code | sign).to(tl.uint8)
    return tl.where(missing, 0x7F, byte).to(tl.uint8)


@triton.jit
def decode(byte, COMPILED: tl.constexpr):
    """FP16 values of bytes, exactly; FP32 under the interpreter."""
    if COMPILED:
        # Not `is_pure`, so that it stays where it is written. Moved behind the loads from shared
        # memory it would run once per use of the tile, on bytes that ldmatrix can not transpose.
        value = tl.inline_asm_elementwise(
            "{.reg .b16 low, high; mov.b32 {low, high}, $2; "
            "cvt.rn.f16x2.e4m3x2 $0, low; cvt.rn.f16x2.e4m3x2 $1, high;}",
            "=r,=r,r",
            [byte],
            tl.float16,
            is_pure=False,
            pack=4,
        )
    else:
        bits = ((byte & 0x7F).to(tl.int32) << 20) | ((byte & 0x80).to(tl.int32) << 24)
        value = bits.to(tl.float32, bitcast=True) * 1.329227995784916e36  # 2^120
        value = tl.where((byte & 0x7F) == 0x7F, float("nan"), value)
    return value
