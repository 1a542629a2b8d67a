# SPDX-License-Identifier: Apache-2.0
"""MXFP4 weights as BF16 operands, a 32-bit word of 8 codes at a time.

A word holds the codes of 8 columns. Its nibbles i and i + 4, brought to `s<<15 | eem<<6` of both
halves, are two BF16 numbers 2^-126 times their values, and one packed multiplication by 2^126
times the scale makes them exact weights. So a word gives four operand registers, each for columns
8 w + i and 8 w + i + 4.

One multiplication by 2^12 + 2^6 (by 2^8 + 2^4 from the byte's upper nibble, less 4 places) puts
the sign and the rest of a nibble into place together: 17 instructions decode a word, and half of
the shifting is the multiplier's, which is idle otherwise.

**Scales.** 2^126 times the scale is itself a BF16 number up to scale byte 128. With larger bytes
or 255 (NaN), WIDE, there is a second multiplication. Products from 2^128 on are infinite, as in
`kimi_k3.mxfp4`.

`COMPILED` is false only under Triton's interpreter, which has no inline assembly; the two ways of
writing a product give the same bits.
"""

import triton
import triton.language as tl


@triton.jit
def _times(words, factors, COMPILED: tl.constexpr):
    """Both BF16 halves of `words` times both of `factors`; all int32 of one shape."""
    if COMPILED:
        product = tl.inline_asm_elementwise(
            "mul.rn.bf16x2 $0, $1, $2;", "=r,r,r", [words, factors], tl.int32, is_pure=True, pack=1
        )
    else:  # the interpreter has no inline assembly; widening to FP32 is shifting to the top half
        low = (words << 16).to(tl.float32, bitcast=True) * (factors << 16).to(
            tl.float32, bitcast=True
        )
        high = (words & -65536).to(tl.float32, bitcast=True) * (factors & -65536).to(
            tl.float32, bitcast=True
        )
        product = ((low.to(tl.int32, bitcast=True) >> 16) & 0xFFFF) | (
            high.to(tl.int32, bitcast=True) & -65536
        )
    return product


@triton.jit
def _both_halves(exponent, scale):
    """BF16 2^(exponent - 127) in both halves; NaN where the scale byte is 255."""
    return tl.where(scale == 255, 0x7FC07FC0, exponent * 0x00800080)


@triton.jit
def factors(scale, WIDE: tl.constexpr):
    """What the words' codes are multiplied by: both int32, of the shape of `scale` (u8).

    The second is only for WIDE, and the first again otherwise.
    """
    scale = scale.to(tl.int32)
    if WIDE:
        narrow = _both_halves(tl.minimum(scale, 128) + 126, scale)
        wide = _both_halves(tl.maximum(scale, 128) - 1, scale)
    else:
        narrow = (scale + 126) * 0x00800080
        wide = narrow
    return narrow, wide


@triton.jit
def pairs(words, narrow, wide, NIBBLE: tl.constexpr, WIDE: tl.constexpr, COMPILED: tl.constexpr):
    """BF16 [..., 2] weights of columns 8 w + NIBBLE and 8 w + NIBBLE + 4 of int32 `words` [...]."""
    if NIBBLE >= 2:
        words = words >> 8
    if NIBBLE % 2 == 0:
        code = ((words & 0x000F000F) * 0x1040) & -2118090304  # 0x81C081C0
    else:
        code = ((words & 0x00F000F0) * 0x0104) & -2118090304
    value = _times(code, narrow, COMPILED)
    if WIDE:
        value = _times(value, wide, COMPILED)
    return tl.join(value.to(tl.int16), (value >> 16).to(tl.int16)).to(tl.bfloat16, bitcast=True)


@triton.jit
def by_nibble(x):
    """Activations [..., 2, 2, 2] of a word's columns 4 half + 2 upper + lower as four [..., half].

    The last axes are (half, lower, upper); entry 2 upper + lower belongs to that nibble.
    """
    low, high = tl.split(x)
    x0, x1 = tl.split(low)
    x2, x3 = tl.split(high)
    return x0, x1, x2, x3


@triton.jit
def multiply(w, x, acc, COMPILED: tl.constexpr):
    """`acc` plus the FP32 product of BF16 `w` and `x`, the last two axes."""
    if COMPILED:
        acc = tl.dot(w, x, acc)
    else:  # the interpreter multiplies the bits of BF16 numbers, and widens small ones wrongly
        exact = w.to(tl.int16, bitcast=True).to(tl.int32) << 16
        acc = tl.dot(exact.to(tl.float32, bitcast=True), x.to(tl.float32), acc)
    return acc
