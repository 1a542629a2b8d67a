# SPDX-License-Identifier: Apache-2.0
"""Candidates of the controls: honest ones, and each with its fault."""

from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from fasttrack import strict_yaml
from kimi_k3.decode.kernels.shapes import Operand, Role
from kimi_k3.validation.candidate import Candidate, KernelIdentity, MachineCode
from kimi_k3.validation.controls.interpreted import source_digest

HERE = Path(__file__).parent
SOURCE = "controls.yaml"
EPS = 1e-5
HIDDEN, ROWS, ROOM = 192, 40, 9
HEADS, WIDTH, SLOTS, WINDOW = 2, 16, 24, 9
COLUMNS = 3
"""Of the table whose first column says where states are read."""
FILES = {"mix": "mix.py", "delta": "delta.py"}
KERNELS = {"mix": ("score", "mix"), "delta": ("delta",)}


class Honest(BaseModel):
    """An honest candidate."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    operator: str
    """What it computes."""
    program: Literal["mix", "delta"]
    """Module of its program, beside this one."""
    form: Literal["add", "block", "delta"]
    """Which operands it has."""


class Control(BaseModel):
    """A candidate that a gate must catch."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str
    """Unique."""
    gate: str
    """Name of the gate that must catch it."""
    honest: str
    """The honest candidate that it would be."""
    fault: str = ""
    """A fault of its program."""
    classes: dict[str, str] = Field(default_factory=dict)
    """Operands that its contract classes wrongly."""
    code: Annotated[tuple[str, ...], Field(max_length=2)] = ()
    """A text of its machine code, and what stands in its place."""
    digest: bool = False
    """Whether it declares the digest of another build."""
    host: bool = False
    """Whether it only works in memory of the host, whatever the device is."""
    modes: tuple[int, ...] = ()
    """Modes of the catalogue that it is an example of."""
    demo: bool = False
    """Whether it is one that people meet."""
    why: str
    """What is wrong, in a sentence."""


class Controls(BaseModel):
    """The file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    honest: dict[str, Honest]
    """By name."""
    controls: tuple[Control, ...]
    """In the order of the gates."""


@cache
def controls() -> Controls:
    """All of them.

    Raises:
        InputError: the file is malformed.
    """
    text = (files(__package__) / SOURCE).read_bytes()
    return strict_yaml.validate(strict_yaml.parse(text, SOURCE), Controls)


def honest_candidate(name: str, device: str = "cpu", folder: str = "") -> Candidate:
    """An honest candidate.

    Args:
        name: of an entry of `honest`.
        device: where it runs.
        folder: where the faults of its program have files.
    """
    one = controls().honest[name]
    operands = _operands(one.form)
    source = str(HERE / FILES[one.program])
    digest = source_digest(source)
    arguments: dict[str, Any] = {"folder": folder}
    if one.program == "mix":
        arguments |= {"eps": EPS}
    most = next(operand.shape[0] for operand in operands if operand.name == "out")
    return Candidate(
        name=name,
        operator=one.operator,
        entry=f"{__package__}.{one.program}:program",
        arguments=arguments,
        operands=operands,
        rows=(1, most),
        constants={"eps": EPS},
        kernels=tuple(KernelIdentity(kernel, digest) for kernel in KERNELS[one.program]),
        device=device,
        classes={one.name: _class(one) for one in operands},
        code=_code(),
        sources=[source],
    )


def faulty_candidate(control: Control, device: str = "cpu", folder: str = "") -> Candidate:
    """An honest candidate with a control's fault.

    Args:
        control: which.
        device: where it runs.
        folder: where the fault has files.
    """
    found = honest_candidate(control.honest, device, folder)
    arguments = dict(found.arguments) | {"fault": control.fault}
    code = found.code
    assert code is not None
    if control.code:
        old, new = (text.encode() for text in control.code)
        if code.data.count(old) != 1:
            raise ValueError(f"{control.name} replaces what is not there once: {control.code[0]!r}")
        code = replace(code, data=code.data.replace(old, new))
    if control.digest:
        code = replace(code, digest="0" * 64)
    return replace(
        found,
        name=control.name,
        arguments=arguments,
        code=code,
        classes=dict(found.classes) | control.classes,
    )


def _code() -> MachineCode:
    return MachineCode(
        "wait.ptx", (HERE / "wait.ptx").read_bytes(), (HERE / "wait.yaml").read_bytes()
    )


def _class(operand: Operand) -> str:
    names = {Role.STATIC: "static", Role.OUT: "out", Role.SCALAR: "scalar"}
    return names.get(operand.role, "dynamic")


def _operands(form: str) -> tuple[Operand, ...]:
    if form == "delta":
        vectors, state = (WINDOW, HEADS, WIDTH), (SLOTS, HEADS, WIDTH, WIDTH)
        return (
            *(Operand(name, "bf16", vectors, Role.IN) for name in ("q", "k", "v")),
            Operand("log_decay", "fp32", vectors, Role.IN),
            Operand("beta", "fp32", vectors[:2], Role.IN),
            Operand("slot_in", "int32", (WINDOW,), Role.IN, row_stride=COLUMNS),
            Operand("slot_out", "int32", (WINDOW,), Role.IN),
            Operand("state", "fp32", state, Role.INOUT),
            Operand("out", "bf16", vectors, Role.OUT),
        )
    rows = (ROWS, HIDDEN)
    kept = Operand("prefix_out", "bf16", rows, Role.OUT)
    if form == "block":
        kept = Operand("block_out", "bf16", rows, Role.OUT, row_stride=ROOM * HIDDEN)
    return (
        Operand("prefix", "bf16", rows, Role.IN),
        Operand("delta", "bf16", rows, Role.IN),
        Operand("blocks", "bf16", (ROWS, ROOM, HIDDEN), Role.IN),
        Operand("saved", "int32", (), Role.SCALAR, low=1, high=ROOM - 1),
        Operand("score", "fp32", (HIDDEN,), Role.STATIC),
        Operand("norm", "bf16", (HIDDEN,), Role.STATIC),
        Operand("logits", "fp32", (ROWS, ROOM + 1), Role.WORKSPACE),
        Operand("out", "bf16", rows, Role.OUT),
        kept,
    )
