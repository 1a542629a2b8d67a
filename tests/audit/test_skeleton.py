# SPDX-License-Identifier: Apache-2.0
"""The skeleton: the same for other registers, another one for another order."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fasttrack.audit.program import File, Instruction, Kernel, Register
from fasttrack.audit.skeleton import line_of, skeleton_of
from tests.audit.example import RIGHT, WRONG, kernel

MOVING = [one for one in kernel(WRONG).instructions if one.opcode in ("LDG", "BAR", "ACQBULK")]


def _with(code: list[Instruction]) -> Kernel:
    placed = tuple(replace(one, address=16 * at) for at, one in enumerate(code))
    return replace(kernel(WRONG), instructions=placed)


def _renamed(one: Instruction, by: int) -> Instruction:
    operands = tuple(
        replace(op, index=op.index + by)
        if isinstance(op, Register) and op.file is File.R and op.index is not None
        else op
        for op in one.operands
    )
    return replace(one, operands=operands)


def test_the_moved_load_has_another_skeleton_than_the_one_in_its_place() -> None:
    assert skeleton_of(kernel(WRONG)) != skeleton_of(kernel(RIGHT))


@given(st.integers(1, 20))
def test_registers_do_not_count(by: int) -> None:
    code = [_renamed(one, by) for one in kernel(WRONG).instructions]
    assert skeleton_of(_with(code)) == skeleton_of(kernel(WRONG))


@given(st.permutations(MOVING))
def test_an_order_of_accesses_and_synchronisation_is_one_skeleton(code: list[Instruction]) -> None:
    same = [line_of(one) for one in code] == [line_of(one) for one in MOVING]
    assert (skeleton_of(_with(code)) == skeleton_of(_with(MOVING))) is same


@given(st.integers(0, len(kernel(WRONG).instructions) - 1))
def test_an_access_or_wait_that_is_gone_shows(at: int) -> None:
    code = list(kernel(WRONG).instructions)
    gone = code.pop(at)
    counts = gone.opcode in {
        "LDG",
        "STG",
        "LDC",
        "ULDC",
        "ACQBULK",
        "PREEXIT",
        "BAR",
        "EXIT",
        "BRA",
    }
    assert (skeleton_of(_with(code)) != skeleton_of(kernel(WRONG))) is counts
