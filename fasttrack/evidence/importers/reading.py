# SPDX-License-Identifier: Apache-2.0
"""Files of an import, read without surprise: strict YAML, bounded JSON, finite numbers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from fasttrack import strict_yaml
from fasttrack.errors import InputError
from fasttrack.evidence.predicates.common import Record
from fasttrack.evidence.statement import no_constant, once

MAX_FILE = 64 << 20
"""Bytes of one result file."""

AnyRecord = TypeVar("AnyRecord", bound=Record)


@dataclass(frozen=True)
class Source:
    """One input file.

    Attributes:
        name: how messages name it.
        raw: its bytes.
    """

    name: str
    raw: bytes


def read_yaml(source: Source, model: type[AnyRecord]) -> AnyRecord:
    """A map or sidecar.

    Raises:
        InputError: with every problem at its line and column.
    """
    return strict_yaml.validate(strict_yaml.parse(source.raw, source.name), model)


def read_object(source: Source) -> dict[str, Any]:
    """The JSON object that a result file holds.

    Raises:
        InputError: it is too large, no JSON, or something else than an object.
    """
    return json_object(source.raw, source.name)


def json_object(raw: bytes, where: str) -> dict[str, Any]:
    """As `read_object`, for a part of a file."""
    if len(raw) > MAX_FILE:
        raise InputError.one(where, f"{len(raw):,} bytes", f"at most {MAX_FILE:,}")
    try:
        data = json.loads(raw, object_pairs_hook=once, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        raise InputError.one(where, str(error)[:200] or "nesting", "JSON") from error
    if not isinstance(data, dict):
        raise InputError.one(where, f"JSON of type {type(data).__name__}", "a JSON object")
    return data


def number(data: Mapping[str, Any], key: str, where: str) -> float:
    """A finite number above 0.

    Raises:
        InputError: it is missing, something else, or not above 0.
    """
    value = finite(data, key, where)
    if value <= 0:
        raise InputError.one(where, f"`{key}` {value:g}", "a number above 0")
    return value


def finite(data: Mapping[str, Any], key: str, where: str) -> float:
    """A finite number of at most 1e12 in size; raises as `number` does."""
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        saw = f"no `{key}`" if value is None else f"`{key}` {str(value)[:40]!r}"
        raise InputError.one(where, saw, "a number")
    if not abs(value) <= 1e12:  # also what JSON spells as 1e999
        raise InputError.one(where, f"`{key}` {str(value)[:40]}", "a number of at most 1e12")
    return float(value)


def whole(data: Mapping[str, Any], key: str, where: str) -> int:
    """A whole number from 0; raises as `number` does."""
    value = data.get(key)
    if type(value) is not int or not 0 <= value <= 1 << 40:
        saw = f"no `{key}`" if value is None else f"`{key}` {str(value)[:40]!r}"
        raise InputError.one(where, saw, "a whole number")
    return value


def section(data: Mapping[str, Any], name: str, where: str, want: str) -> Mapping[str, Any]:
    """An object inside a result.

    Raises:
        InputError: it is not there; `want` says of what it would be a part.
    """
    value = data.get(name)
    if not isinstance(value, dict):
        raise InputError.one(where, f"no section `{name}`", want)
    return value
