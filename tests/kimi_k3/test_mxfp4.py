# SPDX-License-Identifier: Apache-2.0
"""MX formats against a second formulation: exact rationals, bit fields, and search.

Nothing here uses the tables of the code under test. A wrong nibble order, a bias off by one, a
tie that goes the wrong way, or a saturating scale changes at least one expected number.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kimi_k3.mxfp4 import (
    MxRule,
    decode_mxfp4,
    decode_mxfp8,
    fake_quantize_mxfp8,
    mxfp8_scale,
    pack,
    quantize_mxfp4,
    quantize_mxfp8,
    scale_values,
    unpack,
)


def exact_code(code: int) -> Fraction:
    """e2m1 from its fields: sign, exponent with bias 1 and a subnormal row, one mantissa bit."""
    sign, e, m = code >> 3, (code >> 1) & 3, code & 1
    size = Fraction(m, 2) if e == 0 else (1 + Fraction(m, 2)) * 2 ** (e - 1)
    return -size if sign else size


def exact_e4m3(byte: int) -> Fraction | None:
    sign, e, m = byte >> 7, (byte >> 3) & 15, byte & 7
    if e == 15 and m == 7:
        return None
    size = (
        Fraction(m, 8) * Fraction(1, 64)
        if e == 0
        else (1 + Fraction(m, 8)) * Fraction(2) ** (e - 7)
    )
    return -size if sign else size


def exact_scale(byte: int) -> Fraction:
    return Fraction(2) ** (byte - 127)


def all_codes_and_scales() -> tuple[torch.Tensor, torch.Tensor]:
    codes = torch.arange(32, dtype=torch.uint8).remainder(16).expand(256, 32)
    return pack(codes), torch.arange(256, dtype=torch.uint8)[:, None]


def bits_of(value: Fraction, exponent_bits: int, mantissa_bits: int) -> int:
    """The IEEE bits of a number that the format holds exactly, assembled by hand."""
    if value == 0:
        return 0
    sign, size = int(value < 0), abs(value)
    bias = 2 ** (exponent_bits - 1) - 1
    e = math.floor(math.log2(size.numerator)) - math.floor(math.log2(size.denominator))
    e -= size < Fraction(2) ** e
    e = max(e, 1 - bias)
    field = size / Fraction(2) ** e * 2**mantissa_bits
    assert field.denominator == 1
    biased = e + bias if field >= 2**mantissa_bits else 0
    fraction = int(field) - (2**mantissa_bits if biased else 0)
    return (sign << (exponent_bits + mantissa_bits)) | (biased << mantissa_bits) | fraction


@pytest.mark.parametrize(
    ("dtype", "integer", "exponent_bits", "mantissa_bits"),
    [
        (torch.float64, torch.int64, 11, 52),
        (torch.float32, torch.int32, 8, 23),
        (torch.bfloat16, torch.int16, 8, 7),
    ],
)
def test_every_code_at_every_scale_has_the_bits_of_its_exact_value(
    dtype: torch.dtype, integer: torch.dtype, exponent_bits: int, mantissa_bits: int
) -> None:
    decoded = decode_mxfp4(*all_codes_and_scales(), dtype)
    width = 1 + exponent_bits + mantissa_bits
    bits = decoded.view(integer).to(torch.int64).tolist()
    compared = 0
    for scale in range(255):
        for code in range(16):
            want = exact_code(code) * exact_scale(scale)
            saw = bits[scale][code] % 2**width
            if abs(want) >= 2**128 and dtype is not torch.float64:
                assert math.isinf(decoded[scale, code].item())
            elif code == 8:
                assert saw == 2 ** (width - 1)  # -0.0
            else:
                assert saw == bits_of(want, exponent_bits, mantissa_bits), (code, scale)
            compared += 1
    assert compared == 255 * 16


def test_scale_byte_255_makes_every_code_of_its_group_nan_and_no_other() -> None:
    packed = pack(torch.zeros(1, 96, dtype=torch.uint8))
    scale = torch.tensor([[127, 255, 0]], dtype=torch.uint8)
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        nan = decode_mxfp4(packed, scale, dtype).isnan()[0].reshape(3, 32)
        assert nan.all(1).tolist() == [False, True, False]
        assert nan.any(1).tolist() == [False, True, False]


def test_the_low_nibble_is_the_even_column() -> None:
    packed = torch.tensor([0x21] + [0] * 15, dtype=torch.uint8)
    decoded = decode_mxfp4(packed, torch.tensor([127], dtype=torch.uint8))
    assert decoded[:3].tolist() == [0.5, 1.0, 0.0]


@given(
    hnp.arrays(
        np.uint8,
        st.tuples(st.integers(1, 4), st.sampled_from([2, 32, 64])),
        elements=st.integers(0, 15),
    )
)
def test_packing_and_unpacking_are_inverse(codes: np.ndarray) -> None:
    packed = pack(torch.from_numpy(codes))
    assert packed.numpy().tolist() == (codes[:, ::2] + 16 * codes[:, 1::2]).tolist()
    assert unpack(packed).numpy().tolist() == codes.tolist()


GROUPS = st.lists(
    st.one_of(
        st.sampled_from([0.0, -0.0, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0, -5.0, 7.0]),
        st.floats(-8, 8),
        st.floats(-1e-30, 1e-30),
        st.floats(-1e30, 1e30),
    ),
    min_size=32,
    max_size=32,
)


@given(GROUPS)
def test_quantising_takes_the_nearest_code_with_ties_to_even_at_the_smallest_scale_that_holds(
    values: list[float],
) -> None:
    packed, scale = quantize_mxfp4(torch.tensor([values], dtype=torch.float64))
    byte = scale.item()
    amax = max(abs(Fraction(v)) for v in values)
    if amax == 0:
        assert byte == 127
    else:
        fits = [b for b in range(255) if amax <= 6 * exact_scale(b)]
        assert byte == fits[0]
    for value, code in zip(values, unpack(packed)[0].tolist(), strict=True):
        x = Fraction(value) / exact_scale(int(byte))
        best = min(range(8), key=lambda c: (abs(exact_code(c) - abs(x)), c % 2))
        assert code & 7 == best
        assert code >> 3 == (math.copysign(1, value) < 0)


@given(st.lists(st.integers(0, 15), min_size=32, max_size=32), st.integers(0, 254))
def test_decoded_weights_quantise_to_values_that_are_the_same(codes: list[int], byte: int) -> None:
    packed = pack(torch.tensor([codes], dtype=torch.uint8))
    scale = torch.tensor([[byte]], dtype=torch.uint8)
    decoded = decode_mxfp4(packed, scale, torch.float64)
    again = decode_mxfp4(*quantize_mxfp4(decoded), torch.float64)
    smallest = 2.0**-126 * 0.5  # below it a group may not be shifted up to use the larger codes
    if decoded.abs().amax() >= smallest or byte == 0:
        assert torch.equal(decoded, again)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_weights_that_are_not_finite_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="no code for infinity"):
        quantize_mxfp4(torch.tensor([[value] + [0.0] * 31]))


def rule_exponent(amax: float, rule: MxRule) -> int:
    """Scale byte by search over exact rationals, from the words of the specification."""
    size = Fraction(amax)
    if size == 0:
        return 0
    if rule is MxRule.AMAX:
        return next((b for b in range(255) if size <= 448 * exact_scale(b)), 254)
    # plain floor: the largest b with 2^(b-127) x 2^8 <= amax
    return max((b for b in range(255) if 256 * exact_scale(b) <= size), default=0)


EDGES = [
    0.0, 1.0, 1.75, math.nextafter(1.75, 2), np.nextafter(np.float32(1.75), np.float32(1)).item(),
    np.nextafter(np.float32(1.75), np.float32(2)).item(), 1.9999, 2.0, 448.0, 449.0, 3.9,
    2.0**-119, 2.0**-126, 2.0**-127, 2.0**-149, 1.75 * 2.0**-120, 2.0**127, 1.75 * 2.0**127,
    np.finfo(np.float32).max.item(),
]  # fmt: skip


@pytest.mark.parametrize("rule", MxRule)
@pytest.mark.parametrize("amax", EDGES)
def test_a_scale_follows_its_rule_at_every_edge(amax: float, rule: MxRule) -> None:
    x = torch.zeros(1, 32, dtype=torch.float32)
    x[0, 7] = -amax
    seen = abs(x[0, 7].item())  # what FP32 made of it
    want = rule_exponent(seen, rule)
    saw = mxfp8_scale(x, rule).item()
    # Subnormal magnitudes all share byte 0, as do all that search finds no positive exponent for.
    assert saw == want, (seen, saw, want)


E4M3 = [(byte, value) for byte in range(128) if (value := exact_e4m3(byte)) is not None]


def nearest_e4m3(x: Fraction) -> Fraction:
    _, best = min(E4M3, key=lambda bv: (abs(bv[1] - abs(x)), bv[0] % 2))
    return -best if x < 0 else best


@pytest.mark.parametrize("rule", MxRule)
@settings(max_examples=25)
@given(values=st.lists(st.floats(-1000, 1000, width=32), min_size=32, max_size=32))
def test_activations_round_to_the_nearest_e4m3_value_and_saturate(
    rule: MxRule, values: list[float]
) -> None:
    codes, scale = quantize_mxfp8(torch.tensor([values]), rule)
    byte = int(scale.item())
    assert byte == rule_exponent(max(map(abs, values)), rule)
    decoded = decode_mxfp8(codes, scale, torch.float64)[0].tolist()
    for value, saw in zip(values, decoded, strict=True):
        want = nearest_e4m3(Fraction(value) / exact_scale(byte)) * exact_scale(byte)
        assert Fraction(saw) == want


def test_only_the_floor_rule_clips_the_largest_value() -> None:
    x = torch.zeros(1, 32)
    x[0, 0] = 1.99
    assert fake_quantize_mxfp8(x, MxRule.FLOOR)[0, 0].item() == 1.75
    assert fake_quantize_mxfp8(x, MxRule.AMAX)[0, 0].item() == 2.0


def test_a_nan_activation_stays_nan_and_leaves_its_group_alone() -> None:
    x = torch.ones(1, 64)
    x[0, 3] = torch.nan
    x[0, 40] = torch.inf
    out = fake_quantize_mxfp8(x, MxRule.AMAX)[0]
    assert out.isnan().nonzero().flatten().tolist() == [3]
    assert out[:32][~out[:32].isnan()].unique().tolist() == [1.0]
    saturated = decode_mxfp8(*quantize_mxfp8(x, MxRule.AMAX), torch.float64)[0]
    assert saturated[40].item() == 448 * 2.0**120


def test_a_group_of_zeros_stays_zero_under_both_rules() -> None:
    zeros = torch.zeros(2, 32)
    for rule in MxRule:
        assert mxfp8_scale(zeros, rule).tolist() == [[0], [0]]
        assert fake_quantize_mxfp8(zeros, rule).tolist() == zeros.tolist()


def test_scale_values_are_powers_of_two_in_every_dtype() -> None:
    scale = torch.arange(255, dtype=torch.uint8)
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        assert scale_values(scale, dtype).to(torch.float64).tolist() == [
            float(exact_scale(b)) for b in range(255)
        ]
