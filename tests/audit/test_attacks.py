# SPDX-License-Identifier: Apache-2.0
"""Kernels that were once proved and must not be; compiled as they are read."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fasttrack.audit.contract import Contract
from fasttrack.audit.finding import Verdict
from fasttrack.audit.judge import audit
from fasttrack.audit.program import Kernel
from fasttrack.audit.read.cubin import read_cubin
from tests.audit.controls.build import compile_source

SOURCE = Path(__file__).parent / "attacks.cu"
ARCHS = ("sm_90a", "sm_100a", "sm_103a")
WAITING = ("ended", "counted", "voted", "distant")
FLAGGED = ("bounded", "aborted")


@cache
def kernels(arch: str) -> dict[str, Kernel]:
    """The kernels of the file, by name."""
    return {one.name: one for one in read_cubin(compile_source(SOURCE, arch))}


def contract(kernel: str) -> Contract:
    """What the parameters of a kernel hold, truly."""
    flagged = kernel in FLAGGED
    read = {"holds": "mailbox", "after": "flag", "rounds": 1} if flagged else {"holds": "dynamic"}
    flag: list[dict[str, Any]] = [{"name": "flag", "holds": "flag", "scope": "sys"}]
    document = {
        "contract": 1, "kernel": kernel, "block": [128, 1, 1], "cluster": 1, "pdl": not flagged,
        "parameters": [
            {"name": "w", "holds": "static"}, {"name": "rows", **read}, *(flag if flagged else []),
            {"name": "out", "holds": "out"}, {"name": "count", "holds": "scalar"},
        ],
        "reads": ["w", "rows", *(["flag"] if flagged else [])], "writes": ["out"],
    }  # fmt: skip
    return Contract.model_validate(document, strict=False)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kernel", [*WAITING, *FLAGGED])
def test_what_was_once_proved_is_not(kernel: str, arch: str) -> None:
    found = audit(kernels(arch)[kernel], contract(kernel), None)
    # An address that was calculated from two parameters may be anything.
    assert found.verdict is (Verdict.UNPROVEN if kernel == "distant" else Verdict.VIOLATED)
    assert found.findings
