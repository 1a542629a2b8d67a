# SPDX-License-Identifier: Apache-2.0
"""The control-flow graph: where runs begin, what follows what, and which runs are loops."""

from dataclasses import replace

from fasttrack.audit.flow.blocks import Blocks, blocks_of
from tests.audit.flow.listing import kernel_of

NESTED = """
MOV R0, RZ
outer:
MOV R1, RZ
inner:
LDG.E.STRONG.SYS R2, desc[UR4][R4.64]
@P0 BRA inner
BAR.SYNC.DEFER_BLOCKING 0x0
@P1 BRA outer
EXIT
end:
BRA end
"""


def _blocks(text: str) -> Blocks:
    return blocks_of(kernel_of(text))


def test_a_run_begins_at_targets_behind_branches_and_around_barriers() -> None:
    assert _blocks(NESTED).starts == (0x0, 0x10, 0x20, 0x40, 0x50, 0x60, 0x70)


def test_what_can_not_be_reached_has_no_place_in_the_order() -> None:
    assert _blocks(NESTED).order == (0x0, 0x10, 0x20, 0x40, 0x50, 0x60)


def test_loops_are_found_smaller_ones_first() -> None:
    blocks = _blocks(NESTED)
    assert blocks.loops == (frozenset({0x20}), frozenset({0x10, 0x20, 0x40, 0x50}))
    assert blocks.loop_of(0x20, 0x30) == frozenset({0x20})
    assert blocks.loop_of(0x20, 0x50) == frozenset({0x10, 0x20, 0x40, 0x50})
    assert blocks.loop_of(0x20, 0x60) is None


def test_a_branch_without_a_guard_does_not_go_on_and_one_with_a_predicate_may() -> None:
    blocks = _blocks("BRA on\nNOP\non:\n@P0 EXIT\nBRA.U UP0, on\nEXIT")
    assert blocks.next == {0x0: (0x20,), 0x10: (0x20,), 0x20: (0x30,), 0x30: (0x20, 0x40), 0x40: ()}


def test_a_guarded_wait_ends_a_run_and_another_does_not() -> None:
    assert _blocks("NOP\nACQBULK\nNOP\nEXIT").starts == (0x0,)
    assert _blocks("NOP\n@P0 ACQBULK\nNOP\nEXIT").starts == (0x0, 0x20)


def test_an_indirect_branch_goes_where_the_kernel_says() -> None:
    kernel = kernel_of("BRX R0, -0x10\nNOP\nEXIT\nEXIT")
    assert blocks_of(kernel).next[0] == ()
    told = replace(kernel, jumps=((0x0, (0x20, 0x30)),))
    assert blocks_of(told).next[0] == (0x20, 0x30)
