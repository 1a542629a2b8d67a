# SPDX-License-Identifier: Apache-2.0
"""Files that are damaged, foreign or made to mislead: never `proved` for that, and never a crash.

What a file holds may come from anybody. It ends as an input error with its reason, as `unproven`
with its reason, or as a verdict on the machine code that it then holds.
"""

import contextlib
import struct
import time
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fasttrack.audit.approvals import Approvals
from fasttrack.audit.finding import Audited, Verdict
from fasttrack.audit.judge import audit
from fasttrack.audit.program import Instruction
from fasttrack.audit.read.cubin import read_cubin
from fasttrack.audit.run import Named, Outcome, audit_files, gathered
from fasttrack.errors import InputError, Problem
from tests.audit.controls.dsl import table as dsl
from tests.audit.controls.table import Control, controls, kernels
from tests.audit.interpreter.lanes import NotExecuted, Stuck
from tests.audit.interpreter.truth import truth

DAY = date(2026, 11, 30)
HONEST, WRONG = "rows_after", "rows_before"
"""Two kernels of one small cubin."""
RUNS = ((0, 3), (0, -1))
SECONDS = 20
"""Longer than any such file may take, on a machine that has other work, too."""


@cache
def _cubin() -> bytes:
    return dsl.stored()["2.sm_90a.cubin"]


@cache
def _contracts() -> tuple[Named, ...]:
    return tuple(
        Named(one.name, one.contract) for one in dsl.controls() if one.name in (HONEST, WRONG)
    )


def _judged(data: bytes, where: Path) -> list[Audited]:
    """What is said of a file with these bytes; nothing, if it is refused as input."""
    file = where / "kernel.cubin"
    file.write_bytes(data)
    begun = time.perf_counter()
    refused: list[Problem] = []
    found: tuple[Outcome, ...] = ()
    try:
        sources, _ = gathered([file], ["sm_90a"])
        # Names may be damaged, too; `**` lets a contract be of no kernel then.
        found = audit_files(sources, _contracts(), Approvals(approvals=1), DAY, only="**")
    except InputError as error:
        refused = list(error.problems)
    assert time.perf_counter() - begun < SECONDS
    assert refused or found
    assert all(one.where and one.saw and one.want for one in refused)
    for one in (one.audited for one in found):
        assert one.verdict is Verdict.PROVED or any(finding.saw for finding in one.findings)
    return [one.audited for one in found]


def _wrong_one(found: list[Audited]) -> list[Audited]:
    return [one for one in found if WRONG in one.kernel]


def test_the_file_that_is_damaged_below_is_read_as_it_is(tmp_path: Path) -> None:
    found = {one.kernel.split("_")[3]: one.verdict for one in _judged(_cubin(), tmp_path)}
    assert found == {"after": Verdict.PROVED, "before": Verdict.VIOLATED}


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\0", b"\x7fELF", b"\x7fELF" + bytes(60), b"MZ" + bytes(4000), b"\xff" * 5000,
        b".version 8.8\n.target sm_90a\n", b"# a contract\n",
    ],
    ids=["empty", "one zero", "magic", "a header of zeros", "another format", "ones", "no kernel",
         "text"],
)  # fmt: skip
def test_what_is_no_cubin_is_refused_or_unproven(data: bytes, tmp_path: Path) -> None:
    assert all(one.verdict is Verdict.UNPROVEN for one in _judged(data, tmp_path))


def test_a_large_file_of_nothing_is_refused_at_once(tmp_path: Path) -> None:
    begun = time.process_time()
    assert not _judged(bytes(50_000_000), tmp_path)
    assert time.process_time() - begun < 2


def test_a_header_before_a_large_file_of_nothing_is_unproven(tmp_path: Path) -> None:
    data = _cubin()[:64] + bytes(50_000_000)
    assert all(one.verdict is Verdict.UNPROVEN for one in _judged(data, tmp_path))


@pytest.mark.parametrize("part", range(1, 16))
def test_a_truncated_cubin_is_never_proved(part: int, tmp_path: Path) -> None:
    found = _judged(_cubin()[: len(_cubin()) * part // 16], tmp_path)
    assert all(one.verdict is Verdict.UNPROVEN for one in found)


def _section_headers(data: bytes) -> tuple[int, int, int]:
    """Where they begin, their size, and how many there are, as the ELF header says."""
    (start,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    return start, size, count


def _with_flags(arch: int) -> bytes:
    data = bytearray(_cubin())
    (flags,) = struct.unpack_from("<I", data, 0x30)
    for shift in (0, 8, 16):
        if flags >> shift & 0xFF == 90:
            flags = flags & ~(0xFF << shift) | arch << shift
    struct.pack_into("<I", data, 0x30, flags)
    return bytes(data)


@pytest.mark.parametrize("arch", [52, 80, 89, 91, 100, 120, 130, 200, 255])
def test_another_architecture_or_one_to_come_is_never_proved(arch: int, tmp_path: Path) -> None:
    assert _with_flags(arch) != _cubin()
    found = _judged(_with_flags(arch), tmp_path)
    assert not any(one.verdict is Verdict.PROVED for one in found)


def test_a_kernel_of_an_architecture_that_is_not_known_is_unproven() -> None:
    control = next(one for one in dsl.controls() if one.name == HONEST)
    kernel = replace(dsl.kernel(HONEST, "sm_90a"), arch="sm_130a")
    audited = audit(kernel, control.contract, None)
    assert audited.verdict is Verdict.UNPROVEN
    assert "sm_130a is not known" in audited.findings[0].saw


def test_a_cubin_without_sections_or_symbols_is_never_proved(tmp_path: Path) -> None:
    start, size, count = _section_headers(_cubin())
    for kept in range(count):
        data = bytearray(_cubin())
        struct.pack_into("<H", data, 0x3C, kept)
        if kept % 4 == 0:
            assert all(one.verdict is Verdict.UNPROVEN for one in _judged(bytes(data), tmp_path))
    stripped = bytearray(_cubin())
    for at in range(count):
        (kind,) = struct.unpack_from("<I", stripped, start + at * size + 4)
        if kind == 2:  # the symbols
            struct.pack_into("<I", stripped, start + at * size + 4, 0)
    assert bytes(stripped) != _cubin()
    assert all(one.verdict is Verdict.UNPROVEN for one in _judged(bytes(stripped), tmp_path))


@settings(
    max_examples=25, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 7)), min_size=1,
                max_size=6))  # fmt: skip
def test_flipped_bits_prove_nothing_that_is_not_so(
    tmp_path: Path, flips: list[tuple[float, int]]
) -> None:
    data = bytearray(_cubin())
    for place, bit in flips:
        data[int(place * len(data))] ^= 1 << bit
    proved = [one for one in _wrong_one(_judged(bytes(data), tmp_path))
              if one.verdict is Verdict.PROVED]  # fmt: skip
    if proved:  # then it was mended by that: it does not read early any more
        (kernel,) = (one for one in read_cubin(bytes(data)) if one.name == proved[0].kernel)
        contract = next(one.contract for one in dsl.controls() if one.name == WRONG)
        with contextlib.suppress(NotExecuted, Stuck):
            assert not truth(kernel, contract, RUNS)


def _unknown(one: Instruction) -> Instruction:
    return replace(one, opcode="FROBNICATE", text=one.text.replace(one.opcode, "FROBNICATE"))


@pytest.mark.parametrize("control", controls()[::6], ids=lambda one: one.name)
def test_an_opcode_that_nobody_knows_is_never_proved(control: Control) -> None:
    kernel = kernels(control.theme, "sm_100a")[control.name]
    last = max(at for at, one in enumerate(kernel.instructions) if one.opcode == "EXIT")
    for at in range(0, last + 1, max(1, last // 8)):
        code = list(kernel.instructions)
        code[at] = _unknown(code[at])
        audited = audit(replace(kernel, instructions=tuple(code)), control.contract, None)
        reached = any(one.address == 16 * at for one in audited.findings)
        assert audited.verdict is not Verdict.PROVED or not reached
        if at == 0:
            assert any(one.rule == "READ" for one in audited.findings)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_machine_code_in_any_order_is_judged_without_a_crash(data: st.DataObject) -> None:
    control = data.draw(st.sampled_from(controls()))
    kernel = kernels(control.theme, "sm_90a")[control.name]
    code = list(kernel.instructions)
    places = st.integers(0, len(code) - 1)
    for one, other in data.draw(st.lists(st.tuples(places, places), min_size=1, max_size=5)):
        code[one], code[other] = (
            replace(code[other], address=16 * one), replace(code[one], address=16 * other),
        )  # fmt: skip
    audited = audit(replace(kernel, instructions=tuple(code)), control.contract, None)
    assert audited.verdict in Verdict
