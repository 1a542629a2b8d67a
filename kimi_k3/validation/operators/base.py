# SPDX-License-Identifier: Apache-2.0
"""What is asked of an operator's description, and what several of them share."""

from importlib.resources import files
from typing import Annotated, Literal, Protocol

import torch
from pydantic import BaseModel, ConfigDict, Field

from fasttrack import strict_yaml
from kimi_k3.decode.kernels.layout import DTYPES
from kimi_k3.validation.case import Case, Content, Expected

BF16_UNIT = 2.0**-8
"""Largest relative error of rounding to BF16."""
FP32_UNIT = 2.0**-24
LEAST_NORMAL = 2.0**-126
"""Below it a device may flush to zero."""


class OperandSchema(BaseModel):
    """What a candidate's operand of one name may be."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    dtype: Literal["bf16", "fp32", "int32", "int64"]
    """Number format."""
    role: Literal["static", "in", "out", "inout", "mailbox", "scalar"]
    """What a launch does with it."""
    shape: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Names of its axes, none for a number; one name is one extent in a candidate's operands."""
    required: bool = False
    """Whether every candidate has it."""


class Schema(BaseModel):
    """An operator as data: what its candidates may look like, and what content they are given."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    operator: str
    """Its name."""
    operands: dict[str, OperandSchema]
    """By name; a candidate has those of its form, and workspaces of its own."""
    families: tuple[str, ...]
    """Kinds of content, the first one for timing."""


class Operator(Protocol):
    """What a kernel computes."""

    name: str
    schema: Schema
    places: tuple[str, ...]
    """Operands that say where a state is: those that stay the same from step to step."""

    def content(self, case: Case) -> Content:
        """All operands that are read, drawn from the case's seed; NaN where nothing is."""

    def expected(self, case: Case, content: Content) -> dict[str, Expected]:
        """What must be written, computed in float64 from the equations."""

    def stock(self, case: Case, content: Content) -> dict[str, torch.Tensor]:
        """What the stock path answers, of the shapes of `expected`."""

    def bytes_moved(self, case: Case) -> int:
        """Bytes that any implementation must move once."""

    def tolerances(self) -> tuple[tuple[str, str, float, str], ...]:
        """Operand, its format, the least relative bound of any value, and where it comes from."""


def schema_of(source: str) -> Schema:
    """The schema that lies beside an operator's module.

    Args:
        source: name of its file, in full, so that evidence depends on it.
    """
    text = (files(__package__) / source).read_bytes()
    return strict_yaml.validate(strict_yaml.parse(text, source), Schema)


def generator(case: Case) -> torch.Generator:
    """Draws of a case, on the device that torch makes tensors on."""
    return torch.Generator(torch.get_default_device()).manual_seed(case.seed)


def drawn(family: str, rng: torch.Generator, *shape: int, scale: float = 1.0) -> torch.Tensor:
    """FP32 values of a family.

    Args:
        family: `normal`, `shifted` (a mean of three deviations), `heavy` (tails of a Pareto
            distribution), `one-hot` (one value in each row), `zeros`, `tiny` or `huge`.
        rng: draws.
        shape: of the result.
        scale: of a normal value.
    """
    normal = torch.randn(shape, generator=rng)
    match family:
        case "shifted":
            normal = normal + 3
        case "heavy":
            tail = (1 - torch.rand(shape, generator=rng)).clamp(min=1e-6).rsqrt()
            normal = normal.sign() * tail
        case "one-hot":
            at = torch.randint(shape[-1], (*shape[:-1], 1), generator=rng)
            normal = torch.zeros(shape).scatter(-1, at, 8.0)
        case "zeros":
            normal = torch.zeros(shape)
        case "tiny":
            normal = normal * 1e-18
        case "huge":
            normal = normal * 1e15
    return normal * scale


def spread(case: Case, name: str, value: torch.Tensor, rest: float = torch.nan) -> torch.Tensor:
    """A value in an operand's shape and format, `rest` around it.

    Args:
        case: whose candidate has the operand.
        name: of the operand; where the candidate has none, the value is returned as it is.
        value: of its first rows and columns.
        rest: of all others.
    """
    operand = case.candidate.operand(name)
    if operand is None:
        return value
    full = torch.full(operand.shape, rest, dtype=DTYPES[operand.dtype])
    full[tuple(slice(n) for n in value.shape)] = value.to(full.dtype)
    return full


def written(case: Case, name: str, value: torch.Tensor, bound: torch.Tensor) -> Expected:
    """What an operand's first rows must hold; the others stay as they are.

    Args:
        case: tells the operand's shape.
        name: of the operand.
        value: of the rows.
        bound: of the rows.
    """
    rows = len(value)
    full, bounds = (torch.zeros(case.shape(name), dtype=torch.float64) for _ in range(2))
    mask = torch.zeros(case.shape(name), dtype=torch.bool)
    full[:rows], bounds[:rows], mask[:rows] = value, bound, True
    return Expected(full, bounds, mask)
