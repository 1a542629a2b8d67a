# SPDX-License-Identifier: Apache-2.0
"""Source lines and indirect branches, in the tool's words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.audit.program import SourceLine
from fasttrack.audit.read import notes
from fasttrack.audit.read.notes import Notes, notes_of
from fasttrack.errors import FactUnavailable

SAID = """
\t.section\t.text.scale,"ax",@progbits
.text.scale:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
\t//## File "/src/scale.cu", line 7
        /*0010*/                   S2R R0, SR_TID.X ;
.L_x_0:
.L_x_1:
        /*0020*/                   BRX R4 -0x30 (*"BRANCH_TARGETS .L_x_0,.L_x_2"*) ;
\t//## File "/src/common.cuh", line 20 inlined at "/src/scale.cu", line 9
.L_x_2:
        /*0030*/                   BRX R4 -0x40 (*"BRANCH_TARGETS .L_x_1,.L_x_9"*) ;
.text.other:
        /*0000*/                   EXIT ;
"""


def _says(monkeypatch: pytest.MonkeyPatch, text: str) -> list[tuple[str, ...]]:
    asked: list[tuple[str, ...]] = []

    def answer(_tool: str, options: tuple[str, ...], _data: bytes) -> str:
        asked.append(options)
        return text

    monkeypatch.setattr(notes, "ask", answer)
    return asked


def test_an_instruction_is_of_the_last_line_that_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _says(monkeypatch, SAID)
    found = notes_of(b"", lines=True)
    first, second = SourceLine("/src/scale.cu", 7), SourceLine("/src/common.cuh", 20)
    assert found["scale"].lines == {0x10: first, 0x20: first, 0x30: second}
    assert found["other"] == Notes()


def test_a_branch_goes_to_its_labels_and_one_with_an_unknown_label_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _says(monkeypatch, SAID)
    assert notes_of(b"", lines=True)["scale"].jumps == {0x20: (0x20, 0x30)}


@pytest.mark.parametrize(("lines", "options"), [(True, ("-c", "-g")), (False, ("-c",))])
def test_lines_are_asked_for_only_where_there_are_some(
    monkeypatch: pytest.MonkeyPatch, lines: bool, options: tuple[str, ...]
) -> None:
    asked = _says(monkeypatch, "")
    assert notes_of(b"", lines=lines)["unknown"] == Notes()
    assert asked == [options]


def test_where_the_tool_has_no_text_there_are_no_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> str:
        raise FactUnavailable("nvdisasm took more than 60 s")

    monkeypatch.setattr(notes, "ask", refuse)
    assert notes_of(b"", lines=True)["scale"] == Notes()


@given(st.lists(st.sampled_from(SAID.splitlines()), max_size=12))
def test_lines_in_any_order_give_some_notes(rows: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        _says(patch, "\n".join(rows))
        for found in notes_of(b"", lines=True).values():
            assert all(at in range(0, 0x40, 16) for at in found.lines)
            assert all(to in range(0, 0x40, 16) for jump in found.jumps.values() for to in jump)
