# SPDX-License-Identifier: Apache-2.0
"""in-toto statements: what was shown (`predicate`) of which bytes (`subject`).

A statement binds to a unit's input digest, its test digest and the cell's key; never to the
manifest file, so that raising a tier does not void the evidence that earned it.
"""

import json
import math
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError, create_model

from fasttrack.errors import InputError, Problem
from fasttrack.evidence.predicates import KINDS, PREDICATES, Predicate
from fasttrack.evidence.predicates.common import Record, Sha256
from fasttrack.manifest.cells import Cell

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
MAX_BYTES = 256 * 1024
"""Of one statement; nodes and launches of one cell fit many times over."""
MAX_PROBLEMS = 20
_SHOWN = 80
"""Characters of a wrong value that a message shows."""

Model = TypeVar("Model", bound=BaseModel)


class Digests(Record):
    """Digests of a subject."""

    sha256: Sha256
    """SHA-256 of the `files/v1` records."""


class Subject(Record):
    """Bytes that the statement is about."""

    name: Annotated[str, Field(pattern=r"^(unit|tests)/[a-z0-9][a-z0-9._-]{0,63}$")]
    """`unit/<id>` or `tests/<id>`."""
    digest: Digests
    """Of those files."""


class InTotoStatement(Record):
    """A statement as it is written, whatever its predicate."""

    type_: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    """Version of the statement format."""
    subject: tuple[Subject, Subject]
    """The unit's files, then its tests."""
    predicate_type: str = Field(alias="predicateType")
    """Which predicate."""
    predicate: Any
    """What was shown."""


@dataclass(frozen=True)
class Statement:
    """One statement that was read.

    Attributes:
        predicate_type: which predicate.
        predicate: its content.
    """

    predicate_type: str
    predicate: Predicate

    @cached_property
    def cell(self) -> Cell:
        """The cell that it speaks about."""
        return self.predicate.cell.cell()

    def problems(self) -> list[str]:
        """Why it shows nothing, whoever signed it; empty when it shows something."""
        problems = self.predicate.problems()
        if undeclared := self.predicate.inputs.undeclared:
            saw = f"{len(undeclared)} files were read that nobody declared, {undeclared[0]} first"
            problems.insert(0, saw)
        return problems

    def to_bytes(self) -> bytes:
        """The payload that is signed: JSON with sorted keys; equal statements, equal bytes."""
        inputs = self.predicate.inputs
        predicate = self.predicate.model_dump(mode="json")
        if inputs.target is None:  # as collected: what only signing adds is not there
            del predicate["inputs"]["target"], predicate["inputs"]["apart"]
        whole = {
            "_type": STATEMENT_TYPE,
            "subject": [
                {"name": f"unit/{inputs.unit}", "digest": {"sha256": inputs.digest}},
                {"name": f"tests/{inputs.unit}", "digest": {"sha256": inputs.tests}},
            ],
            "predicateType": self.predicate_type,
            "predicate": predicate,
        }
        return json.dumps(whole, sort_keys=True, separators=(",", ":")).encode("ascii")


Bytes = tuple[str, str, str]
"""A unit and the digests of its files and tests."""


def bytes_of(statement: Statement) -> Bytes:
    """What a statement speaks of."""
    inputs = statement.predicate.inputs
    return inputs.unit, inputs.digest, inputs.tests


def read_statement(raw: bytes, source: str) -> Statement:
    """A statement from its payload.

    Args:
        raw: the signed bytes.
        source: how messages name it.

    Raises:
        InputError: not a statement of ours, with everything that is wrong with it.
    """
    named = read_json(raw, source).get("predicateType")
    if not isinstance(named, str) or named not in PREDICATES:
        saw = f"predicate type {repr(named)[:_SHOWN]}"
        raise InputError.one(source, saw, f"one of {', '.join(PREDICATES)}")
    written = validated(written_form(named), raw, source)
    statement = Statement(named, written.predicate)
    _agree(statement, written, source)
    return statement


@cache
def written_form(predicate_type: str) -> type[InTotoStatement]:
    """The model of a whole statement with this predicate."""
    model = PREDICATES[predicate_type]
    exactly: Any = Literal[predicate_type]
    return create_model(
        f"{model.__name__}Statement",
        __base__=InTotoStatement,
        __doc__=f"A statement whose predicate is `{model.__name__}`.",
        predicate_type=(exactly, Field(alias="predicateType")),
        predicate=(model, ...),
    )


def read_json(raw: bytes, source: str, limit: int = MAX_BYTES) -> dict[str, Any]:
    """One JSON object, in which no key is there twice and every number is finite.

    Raises:
        InputError: anything else, or more than `limit` bytes.
    """
    if len(raw) > limit:
        raise InputError.one(source, f"{len(raw):,} bytes", f"at most {limit:,}")
    try:
        data = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=once,
            parse_float=_finite,
            parse_constant=no_constant,
        )
    except (ValueError, RecursionError) as error:
        raise InputError.one(source, str(error) or "nesting", "JSON") from error
    if not isinstance(data, dict):
        raise InputError.one(source, type(data).__name__, "a JSON object")
    return data


def validated(model: type[Model], raw: bytes, source: str) -> Model:
    """The record of a type that JSON text holds.

    A key that is there twice goes unseen here: `read_json` comes first.

    Raises:
        InputError: it does not fit, with the first `MAX_PROBLEMS` things that are wrong.
    """
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise InputError(problems_of(error, source)) from error


def problems_of(error: ValidationError, source: str) -> list[Problem]:
    """The first `MAX_PROBLEMS` things that a model has against its data."""
    return [
        Problem(f"{source}: {_path(e['loc'])}", repr(e["input"])[:_SHOWN], e["msg"])
        for e in error.errors(include_url=False)[:MAX_PROBLEMS]
    ]


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For `json.loads`: an object in which no key is there twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:_SHOWN]} is too large a number")
    return number


def no_constant(name: str) -> float:
    """For `json.loads`: refuses NaN and infinities, which other readers of JSON do not know."""
    raise ValueError(f"{name} is no JSON number")


def _path(place: tuple[int | str, ...]) -> str:
    return ".".join(str(part)[:_SHOWN] for part in place) or "top"


def _agree(statement: Statement, written: InTotoStatement, source: str) -> None:
    predicate = statement.predicate
    kind, unit = KINDS[statement.predicate_type], predicate.inputs.unit
    if predicate.cell.kind is not kind:
        raise InputError.one(source, f"a cell of kind {predicate.cell.kind}", f"kind {kind}")
    wanted = [(f"unit/{unit}", predicate.inputs.digest), (f"tests/{unit}", predicate.inputs.tests)]
    found = [(subject.name, subject.digest.sha256) for subject in written.subject]
    if found != wanted:
        raise InputError.one(source, f"subjects {found}", f"{wanted}, as `inputs` says")
