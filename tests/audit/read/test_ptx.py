# SPDX-License-Identifier: Apache-2.0
"""PTX is assembled, and its lines are what findings name."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.audit.program import SourceLine
from fasttrack.audit.read.cubin import read_cubin
from fasttrack.audit.read.ptx import cubin_of, looks_like_ptx, with_lines
from fasttrack.audit.read.tools import assemble
from fasttrack.audit.skeleton import skeleton_of
from fasttrack.errors import FactUnavailable
from tests.audit.example import READ_AT, RIGHT, WRONG, kernel


def test_an_instruction_names_its_line_of_the_ptx() -> None:
    moved = [one for one in kernel().instructions if one.opcode == "LDG"]
    wait = next(one for one in kernel().instructions if one.opcode == "ACQBULK")
    assert SourceLine("scale.ptx", READ_AT) in [one.source for one in moved]
    assert wait.source == SourceLine("scale.ptx", READ_AT - 3)


@pytest.mark.parametrize("text", [WRONG, RIGHT], ids=["wrong", "right"])
def test_naming_lines_does_not_change_the_machine_code(text: bytes) -> None:
    (plain,) = read_cubin(assemble(text, "sm_90a"))
    assert [one.text for one in kernel(text).instructions] == [
        one.text for one in plain.instructions
    ]
    assert skeleton_of(kernel(text)) == skeleton_of(plain)


def test_ptx_that_names_its_own_source_keeps_it() -> None:
    located = WRONG.replace(b"    griddep", b"    .loc 1 77 0\n    griddep") + b'.file 1 "own.cu"\n'
    (found,) = read_cubin(cubin_of(located, "scale.ptx"))
    wait = next(one for one in found.instructions if one.opcode == "ACQBULK")
    assert wait.source == SourceLine("own.cu", 77)


@pytest.mark.parametrize("name", ['a"b.ptx', "a\\b.ptx", "a\nb.ptx", "-"])
def test_a_file_s_name_can_not_say_anything_to_the_assembler(name: str) -> None:
    (file,) = re.findall(rb'\.file 1 "([^"\n]*)"\n', with_lines(WRONG, name))
    assert file in {b"kernel.ptx", b"-"}
    assert cubin_of(WRONG, name).startswith(b"\x7fELF")


@given(st.lists(st.sampled_from(WRONG.split(b"\n")), max_size=30))
def test_only_lines_about_places_are_added(rows: list[bytes]) -> None:
    text = b"\n".join(rows)
    kept = [one for one in with_lines(text, "x").split(b"\n") if not one.startswith(b".loc 1 ")]
    assert b"\n".join(kept) == re.sub(rb"//[^\n]*", b"", text) + b'\n.file 1 "x"\n'


def test_instructions_over_several_lines_and_comments_are_left_whole() -> None:
    text = b"""{
/* ld.x;
 */ mov.u32 %a,
  %b;
call (%r),
  f,
  (%a);
{ret;}
$L:
@%p bra $L;
}"""
    said = with_lines(text, "x").split(b"\n")
    assert [one for one in said if one.startswith(b".loc")] == [
        b".loc 1 3 0", b".loc 1 5 0", b".loc 1 10 0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "is_ptx"),
    [
        (WRONG, True), (b".version 8.6\n.target sm_103a\n", True), (b"", False),
        (b"// .target\n", False), (b"\x7fELF .target sm_90a", False), (b".target sm_90a\0", False),
    ],
)  # fmt: skip
def test_ptx_is_known_by_its_target(text: bytes, is_ptx: bool) -> None:
    assert looks_like_ptx(text) is is_ptx


def test_ptx_without_a_kernel_is_told() -> None:
    with pytest.raises(FactUnavailable, match="it holds no kernel"):
        cubin_of(b".version 8.6\n.target sm_90a\n", "x.ptx")


def test_what_the_assembler_refuses_is_told_in_its_words_on_one_line() -> None:
    with pytest.raises(
        FactUnavailable, match=r"^ptxas can not read it: .*'the file'|line 2\d"
    ) as e:
        cubin_of(WRONG.replace(b"bar.sync 0", b"bar.sink 0"), "x.ptx")
    assert "\n" not in str(e.value)
    assert "/tmp" not in str(e.value)
