# SPDX-License-Identifier: Apache-2.0
"""What an audit says as a whole: verdicts, lists, places; and that nothing given breaks it."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasttrack.audit.finding import Finding, Verdict
from fasttrack.audit.flow import explore
from fasttrack.audit.flow.opcodes import KNOWN
from fasttrack.audit.judge import audit, gravest
from fasttrack.audit.skeleton import skeleton_of
from tests.audit.flow.listing import PROLOGUE, contract_of, kernel_of

GOOD = (
    PROLOGUE
    + """
LDG.E R12, desc[UR4][R2.64]
ACQBULK
LDG.E R13, desc[UR4][R4.64]
MEMBAR.ALL.GPU
STG.E desc[UR4][R6.64], R13
BAR.SYNC.DEFER_BLOCKING 0x0
PREEXIT
EXIT
"""
)
EARLY = (
    PROLOGUE
    + """
@P2 BRA on
ACQBULK
on:
LDG.E R13, desc[UR4][R4.64]
ACQBULK
EXIT
"""
)


def _rules(audited: Any) -> list[str]:
    return [one.rule for one in audited.findings]


def test_a_kernel_without_findings_is_proved_and_its_order_listed() -> None:
    audited = audit(kernel_of(GOOD), contract_of(), None)
    assert audited.verdict is Verdict.PROVED
    assert audited.findings == ()
    assert (audited.waits, audited.fences, audited.triggers) == ((0xE0,), (0x100,), (0x130,))
    assert audited.instructions == 21


def test_without_a_contract_it_is_unproven_and_its_order_listed() -> None:
    audited = audit(kernel_of(EARLY), None, None)
    assert audited.verdict is Verdict.UNPROVEN
    assert _rules(audited) == ["READ"]
    assert audited.waits == (0xE0, 0x100)


def test_an_architecture_that_was_never_validated_is_unproven() -> None:
    assert audit(kernel_of(GOOD, arch="sm_120a"), contract_of(), None).verdict is Verdict.UNPROVEN


def test_a_contract_of_other_parameters_is_unproven() -> None:
    kernel = kernel_of(GOOD)
    kernel = replace(kernel, parameters=kernel.parameters[:-1])
    assert audit(kernel, contract_of(), None).verdict is Verdict.UNPROVEN


def test_a_kernel_of_no_instructions_is_unproven() -> None:
    assert audit(replace(kernel_of(GOOD), instructions=()), contract_of(), None).verdict is (
        Verdict.UNPROVEN
    )


def test_a_bound_that_is_reached_is_unproven(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(explore.LIMITS, "steps", 3)
    audited = audit(kernel_of(EARLY), contract_of(), None)
    assert audited.verdict is Verdict.UNPROVEN
    assert "steps" in audited.findings[0].saw


def test_a_finding_says_where_and_how_to_get_there() -> None:
    (finding,) = audit(kernel_of(EARLY), contract_of(), None).findings
    assert (finding.rule, finding.verdict, finding.parameter) == ("DOM", Verdict.VIOLATED, "x")
    assert finding.path == (0x0, 0xD0, 0xF0)
    assert finding.address == 0xF0
    assert finding.text == "LDG.E R13, desc[UR4][R4.64]"
    assert finding.source is not None
    assert finding.source.line == 15
    assert "x (dynamic) is read before ACQBULK" in finding.saw


def test_an_approved_skeleton_says_nothing_and_another_is_unproven() -> None:
    kernel = kernel_of(GOOD)
    assert audit(kernel, contract_of(), skeleton_of(kernel)).verdict is Verdict.PROVED
    audited = audit(kernel, contract_of(), "0" * 64)
    assert (audited.verdict, _rules(audited)) == (Verdict.UNPROVEN, ["SKELETON"])


def test_a_skeleton_is_of_the_order_and_not_of_registers() -> None:
    other = kernel_of(GOOD.replace("R13", "R33"))
    moved = kernel_of(
        GOOD.replace("ACQBULK\nLDG.E R13, desc[UR4][R4.64]", "LDG.E R13, desc[UR4][R4.64]\nACQBULK")
    )
    assert skeleton_of(other) == skeleton_of(kernel_of(GOOD))
    assert skeleton_of(moved) != skeleton_of(kernel_of(GOOD))


@pytest.mark.parametrize(
    ("verdicts", "want"),
    [
        ([], Verdict.PROVED),
        ([Verdict.UNPROVEN], Verdict.UNPROVEN),
        ([Verdict.UNPROVEN, Verdict.VIOLATED], Verdict.VIOLATED),
    ],
)
def test_the_gravest_finding_is_the_verdict(verdicts: list[Verdict], want: Verdict) -> None:
    assert gravest(tuple(Finding("DOM", one, "", "", "") for one in verdicts)) is want


def _one_of(words: str) -> st.SearchStrategy[str]:
    return st.sampled_from(words.split())


_OPERANDS = _one_of(
    """
    R0 R2 RZ R254 -R4 ~R6 |R8| UR4 URZ UR63 P0 !P1 PT UP0 B0 0x0 0x10 -0x8 0xffffffff 1.5 +INF
    c[0x0][0x210] c[0x0][0x218] c[0x3][0x0] c[0x0][R0+0x210] cx[UR4][0x0] [R2.64] [R2] [UR4]
    [R2.64+UR4+0x10] desc[UR4][R4.64] desc[UR4][R6.64+-0x8] SR_TID.X gdesc[UR4] 0x20
    """
)
_MODIFIERS = _one_of(
    "E 64 128 WIDE U32 X HI S32 L R CONSTANT STRONG SYS GPU S G ALL ANY EX AND OR IVALL"
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "@P0 ", "@!UP1 "]),
            st.sampled_from(sorted(KNOWN)),
            st.lists(_MODIFIERS, max_size=3),
            st.lists(_OPERANDS, max_size=6),
        ),
        max_size=12,
    )
)
def test_no_instruction_breaks_the_audit_however_it_is_written(
    lines: list[tuple[str, str, list[str], list[str]]],
) -> None:
    listing = "\n".join(
        guard + ".".join([opcode, *modifiers]) + " " + ", ".join(operands)
        for guard, opcode, modifiers, operands in lines
    )
    audited = audit(kernel_of(PROLOGUE + listing + "\nEXIT"), contract_of(), None)
    assert audited.verdict in set(Verdict)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 6), st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ", min_size=3, max_size=8))
def test_an_instruction_that_nobody_knows_is_never_proved(at: int, opcode: str) -> None:
    lines = GOOD.splitlines()
    lines.insert(15 + at, f"{opcode} R40, R41")
    audited = audit(kernel_of("\n".join(lines)), contract_of(), None)
    if opcode not in KNOWN:
        assert audited.verdict is not Verdict.PROVED
