# SPDX-License-Identifier: Apache-2.0
"""Operands as they are written, over tests/cases/audit/operands.yaml."""

import struct
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.audit.program import (
    ZERO,
    Address,
    Constant,
    File,
    Immediate,
    Operand,
    Register,
    Special,
    Target,
)
from fasttrack.audit.read.operands import operand, register, split

CASES = yaml.safe_load(
    (Path(__file__).parents[2] / "cases" / "audit" / "operands.yaml").read_text(encoding="utf-8")
)


def _short(one: Operand | Register | None) -> Any:
    """An operand in few words, as the cases have it."""
    match one:
        case None:
            return None
        case Register():
            signs = "-" * one.negated + "|" * one.absolute + ".64" * one.wide
            return f"{one.file.value}{'zero' if one.index is None else one.index}{signs}"
        case Immediate():
            return one.value
        case Target():
            return f"to {one.address:#x}"
        case Special():
            return f"word {one.text}"
        case Constant():
            signs = "-" * one.negated + "|" * one.absolute
            return [one.bank, one.offset, _short(one.index), signs]
        case Address():
            return {
                "base": _short(one.base), "uniform": _short(one.uniform), "offset": one.offset,
                "descriptor": _short(one.descriptor),
            }  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['in']} {case['text']}")
def test_an_operand_is_read_as_it_is_meant(case: dict[str, Any]) -> None:
    assert _short(operand(case["in"], case["text"], last=True)) == case["is"]


def test_a_number_is_an_address_only_as_the_last_operand_of_a_branch() -> None:
    assert operand("BRA", "0x40", last=False) == Immediate(0x40)
    assert operand("IADD3", "0x40", last=True) == Immediate(0x40)


REGISTERS = st.builds(
    Register,
    file=st.sampled_from(File),
    index=st.integers(0, 254),
    negated=st.booleans(),
    absolute=st.booleans(),
    wide=st.booleans(),
)


@given(REGISTERS)
def test_a_register_is_read_back_from_how_it_is_written(one: Register) -> None:
    bar = "|" * one.absolute
    text = f"{'!' * one.negated}{bar}{one.file.value}{one.index}{bar}{'.64' * one.wide}"
    assert register(text) == one


@pytest.mark.parametrize(("file", "name"), ZERO.items(), ids=str)
def test_the_register_that_is_always_zero_or_true_has_no_number(file: File, name: str) -> None:
    assert register(name) == Register(file, None)


@pytest.mark.parametrize("text", ["PZ", "RT", "URT", "UPZ", "R", "Q3", "R2x", "R2.64+1", ""])
def test_what_is_no_register_is_none(text: str) -> None:
    assert register(text) is None


PARTS = st.sampled_from(
    ("R2", "[R2.64+0x10]", "desc[UR4][R2.64]", "c[0x0][0x210]", "0x1", "{P0, P1}", "(a, [b, c])")
)


@given(st.lists(PARTS, max_size=6))
def test_operands_are_parted_at_commas_in_no_bracket(parts: list[str]) -> None:
    assert split(", ".join(parts)) == parts


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float_is_its_bits(value: float) -> None:
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    text = f"{value:.17g}" if "." in f"{value:.17g}" else f"{value:.1f}"
    assert operand("FADD", text, last=True) == Immediate(bits)


@given(st.text(max_size=40))
def test_any_text_is_some_operand(text: str) -> None:
    assert operand("MOV", text, last=True) is not None
    assert all(isinstance(part, str) for part in split(text))
