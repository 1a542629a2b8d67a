# SPDX-License-Identifier: Apache-2.0
"""Cubins: what the tools say of a real one, and what becomes of wrong answers."""

import hashlib
import json
from collections import defaultdict
from typing import Any

import pytest

from fasttrack.audit.program import Parameter, Target
from fasttrack.audit.read import cubin as module
from fasttrack.audit.read.cubin import INDIRECT, is_cubin, read_cubin
from fasttrack.audit.read.notes import Notes
from fasttrack.audit.read.operands import BRANCHES
from fasttrack.audit.read.tools import ask
from fasttrack.errors import FactUnavailable
from tests.audit.controls.table import ARCHES, kernels, stored
from tests.audit.example import cubin, kernel


def test_a_cubin_says_what_was_made_of_what_by_whom() -> None:
    found = kernel()
    assert (found.name, found.arch, found.bank_offset) == ("scale", "sm_90a", 0x210)
    assert found.parameters == tuple(Parameter(at, 8 * at, 8) for at in range(3))
    assert (found.threads, found.block, found.cluster) == (128, None, None)
    assert found.cubin == hashlib.sha256(cubin()).hexdigest()
    assert found.toolchain.assembler.startswith("ptxas ")
    assert found.toolchain.disassembler.startswith("nvdisasm ")


def test_instructions_lie_one_behind_the_other_and_branches_lead_to_some() -> None:
    code = kernel().instructions
    places = [one.address for one in code]
    assert places == list(range(0, 16 * len(code), 16))
    goals = {op.address for one in code for op in one.operands if isinstance(op, Target)}
    assert goals
    assert goals <= set(places)


@pytest.mark.parametrize("arch", ARCHES)
def test_the_text_of_an_instruction_is_the_tool_s(arch: str) -> None:
    data = stored()[f"order.{arch}.cubin"]
    said = {
        " ".join(row.split("*/", 1)[1].split(";")[0].split()).replace(" ,", ",")
        for row in ask("nvdisasm", ("-c",), data).splitlines()
        if "*/" in row and ";" in row
    }
    code = kernels("order", arch)["s2_warp_waits_restrict"].instructions
    ours = {one.text for one in code if one.opcode not in BRANCHES}  # their goals have labels
    assert len(ours) > 10
    assert ours <= said


def test_a_cluster_s_size_comes_with_the_cubin() -> None:
    assert {kernels("pointers", arch)["cluster_good"].cluster for arch in ARCHES} == {2}


@pytest.mark.parametrize(
    ("data", "is_one"),
    [(cubin(), True), (cubin()[:19], True), (cubin()[:4], True), (cubin()[:3], False),
     (b"", False), (cubin()[:18] + b"\x3e\x00" + cubin()[20:], False)],
    ids=["whole", "cut in the header", "magic", "part of it", "empty", "of a host"],
)  # fmt: skip
def test_a_cubin_is_known_by_its_header(data: bytes, is_one: bool) -> None:
    assert is_cubin(data) is is_one


def _answers(monkeypatch: pytest.MonkeyPatch, tool: str, text: str) -> None:
    real = module.ask

    def answer(asked: str, options: tuple[str, ...], data: bytes) -> str:
        return text if asked == tool and "-c" not in options else real(asked, options, data)

    monkeypatch.setattr(module, "ask", answer)


HEAD: dict[str, Any] = {"Producer": "nvdisasm"}


@pytest.mark.parametrize(
    "said",
    ["", "no JSON", "{}", "[]", "[1, 2]", "[{}, {}, {}]", '[{}, [{"function-name": "scale"}]]',
     json.dumps([HEAD, [{"function-name": "scale", "sass-instructions": [1]}]]),
     json.dumps([HEAD, [{"function-name": "scale", "sass-instructions": 1}]]),
     json.dumps([HEAD, [1]]), json.dumps([HEAD, 1]), "[" * 100_000],
)  # fmt: skip
def test_a_listing_of_another_form_can_not_be_read(
    monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    _answers(monkeypatch, "nvdisasm", said)
    with pytest.raises(FactUnavailable, match="nvdisasm wrote no JSON of the form"):
        read_cubin(cubin())


def _without(word: str) -> str:
    return "\n".join(row for row in ask("cuobjdump", ("-elf",), cubin()).splitlines()
                     if word not in row)  # fmt: skip


@pytest.mark.parametrize(
    ("word", "says"),
    [("sm=", "for which architecture"), ("CBANK", "where the parameters of scale lie"),
     ("Ordinal : 0x1", "the parameters of scale do not fit together")],
)  # fmt: skip
def test_facts_that_are_missing_are_told(
    monkeypatch: pytest.MonkeyPatch, word: str, says: str
) -> None:
    said = _without(word)
    _answers(monkeypatch, "cuobjdump", said)
    with pytest.raises(FactUnavailable, match=says):
        read_cubin(cubin())


def test_a_kernel_without_instructions_is_told_and_not_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _answers(monkeypatch, "nvdisasm", json.dumps([HEAD, []]))
    with pytest.raises(FactUnavailable, match="nvdisasm lists no instructions of scale"):
        read_cubin(cubin())


def test_parameters_that_overlap_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    said = ask("cuobjdump", ("-elf",), cubin())
    _answers(monkeypatch, "cuobjdump", said.replace("Offset  : 0x10", "Offset  : 0xc"))
    with pytest.raises(FactUnavailable, match="do not fit together"):
        read_cubin(cubin())


@pytest.mark.parametrize("opcode", sorted(INDIRECT))
def test_the_tool_s_text_is_read_only_for_lines_and_indirect_branches(
    monkeypatch: pytest.MonkeyPatch, opcode: str
) -> None:
    asked = []

    def notes(_data: bytes, *, lines: bool) -> dict[str, Notes]:
        asked.append(lines)
        return defaultdict(Notes)

    monkeypatch.setattr(module, "notes_of", notes)
    read_cubin(cubin())
    assert asked == [True]
    bare = stored()["order.sm_90a.cubin"]
    read_cubin(bare)
    assert asked == [True]
    said = ask("nvdisasm", ("-json",), bare)
    _answers(monkeypatch, "nvdisasm", said.replace('"ACQBULK"', f'"{opcode}.X"'))
    read_cubin(bare)
    assert asked == [True, False]


def test_what_does_not_begin_as_an_elf_file_is_no_cubin() -> None:
    with pytest.raises(FactUnavailable, match="it is no cubin"):
        read_cubin(b"MZ")
