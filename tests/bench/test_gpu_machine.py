# SPDX-License-Identifier: Apache-2.0
"""What a record of GPU times says of its machine, and how a page puts it."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.bench.gpu_machine import Clocks, conditions, parsed

GENERATOR = runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts/generate.py"))
UNKNOWN = {"driver": None, "sm_mhz": None, "memory_mhz": None}
H200: dict[str, Any] = {"gpu": "NVIDIA H200", "torch": "2.11", "cuda": "13.0", "triton": "3.6"}


def test_an_answer_of_nvidia_smi_is_read() -> None:
    assert parsed("1980, 3201, 580.95.05\n") == Clocks(1980, 3201, "580.95.05")


@pytest.mark.parametrize(
    "answer", ["", "\n", "1980, 3201", "[N/A], 3201, 580", "1980, 3201, 580\n345, 3201, 580\n"]
)
def test_an_answer_that_does_not_tell_the_clocks_of_one_gpu_is_none(answer: str) -> None:
    assert parsed(answer) is None


def test_clocks_are_kept_as_the_span_of_all_samples() -> None:
    assert conditions([Clocks(1755, 3201, "580"), Clocks(1980, 3201, "580")]) == {
        "driver": "580",
        "sm_mhz": [1755, 1980],
        "memory_mhz": [3201, 3201],
    }
    assert conditions([]) == UNKNOWN


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (UNKNOWN, ""),
        (
            conditions([Clocks(1755, 3201, "580"), Clocks(1980, 3201, "580")]),
            ", driver 580, multiprocessors at 1755 to 1980 MHz and memory at 3201 MHz under load",
        ),
    ],
)
def test_a_page_says_what_the_record_knows(told: dict[str, object], said: str) -> None:
    head = "NVIDIA H200, PyTorch 2.11, CUDA 13.0, Triton 3.6"
    assert GENERATOR["on_gpu"](H200 | told) == head + said


def test_only_the_product_that_was_two_is_marked_in_the_table() -> None:
    measured = GENERATOR["record"]("docs/stock-layers.json")
    lines = GENERATOR["stock_tables"](measured)["operations"].splitlines()
    marked = {line.split("|")[1].partition("[")[0].strip() for line in lines if "(a) |" in line}
    assert marked == {"router and latent down"}
    assert lines[-2].startswith("(a) Two plain calls")
