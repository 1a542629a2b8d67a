# SPDX-License-Identifier: Apache-2.0
"""A small kernel in PTX, wrong as it stands, and right with a plain load."""

from functools import cache
from pathlib import Path

from fasttrack.audit.contract import Contract
from fasttrack.audit.lint import load_contract
from fasttrack.audit.program import Kernel
from fasttrack.audit.read.cubin import read_cubin
from fasttrack.audit.read.ptx import cubin_of
from fasttrack.audit.run import Named

CASES = Path(__file__).parents[1] / "cases" / "audit"
WRONG = (CASES / "scale.ptx").read_bytes()
RIGHT = WRONG.replace(b"ld.global.nc.f32 %b", b"ld.global.f32 %b")
CONTRACT = (CASES / "scale.yaml").read_text(encoding="utf-8")
READ_AT = WRONG.split(b"\n").index(b"    ld.global.nc.f32 %b, [%r];") + 1
"""Line of the read that is moved."""


def contract() -> Contract:
    return load_contract(CONTRACT, "scale.yaml")


def named() -> Named:
    return Named("scale.yaml", contract())


@cache
def cubin(text: bytes = WRONG) -> bytes:
    return cubin_of(text, "scale.ptx")


@cache
def kernel(text: bytes = WRONG) -> Kernel:
    (found,) = read_cubin(cubin(text))
    return found
