# SPDX-License-Identifier: Apache-2.0
"""What a pydantic model has against a document, in words for the document's author."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, ValidationError

from fasttrack.errors import Problem
from fasttrack.strict_yaml.plain import shown

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from fasttrack.strict_yaml.document import Document

_MAX_PROBLEMS = 100

_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "`true` or `false`",
    "date_type": "a date such as 2026-11-29",
    "date_parsing": "a date such as 2026-11-29",
    "date_from_datetime_parsing": "a date such as 2026-11-29",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_PREFIXES = ("Input should be ", "Value error, ", "Assertion failed, ")
_CHOICES = {"enum", "literal_error"}


def problems_of(
    error: ValidationError, document: "Document", model: type[BaseModel]
) -> list[Problem]:
    """Every entry of a validation error as a problem with its place in the document.

    Args:
        error: what validating the document's data raised.
        document: where the data came from.
        model: the model that was validated; names the keys that are known.
    """
    entries = error.errors(include_url=False)
    found = _told_once(_problem(entry, document, model) for entry in entries[:_MAX_PROBLEMS])
    if len(entries) > _MAX_PROBLEMS:
        rest = len(entries) - _MAX_PROBLEMS
        found.append(Problem(document.where(()), f"{rest} more problems", "none"))
    return found


def _told_once(problems: Iterable[Problem]) -> list[Problem]:
    """One problem of each value: of what may be one thing or another, it wants either."""
    found: dict[tuple[str, str], Problem] = {}
    for one in problems:
        old = found.get((one.where, one.saw))
        either = f"{old.want}, or {one.want}" if old is not None else one.want
        fix = one.fix if old is None else old.fix or one.fix
        found[one.where, one.saw] = Problem(one.where, one.saw, either, fix)
    return list(found.values())


def _problem(entry: "ErrorDetails", document: "Document", model: type[BaseModel]) -> Problem:
    path, rest = _resolve(entry["loc"], document)
    if entry["type"] == "missing":
        name = str(rest[-1]) if rest else "?"
        saw = f"no key `{name}`{_below(path)}"
        return Problem(document.where(path, key=True), saw, f"the key `{name}`")
    if entry["type"] == "extra_forbidden":
        return _unknown_key(path, document, model)
    is_key = rest == ["[key]"]
    where = document.where(path, key=is_key)
    saw = f"{_value(entry['input'])}{_below(path)}"
    return Problem(where, saw, _want(entry), _fix(entry))


def _resolve(
    loc: tuple[str | int, ...], document: "Document"
) -> tuple[list[str | int], list[str | int]]:
    """Splits a location into the path that the document has and the steps that it lacks.

    Pydantic puts steps of its own between, such as the tag of a union; they are passed over.
    """
    node, path, lacking = document.root, [], []
    for step in loc:
        child = node.child(step)
        if child is None:
            lacking.append(step)
        else:
            node = child
            path.append(step)
    return path, lacking


def _unknown_key(path: list[str | int], document: "Document", model: type[BaseModel]) -> Problem:
    name = str(path[-1])
    known = sorted(_known_keys(model, path[:-1]))
    near = get_close_matches(name, known, n=1)
    saw = f"the unknown key `{shown(name)}`{_below(path[:-1])}"
    want = f"one of {', '.join(f'`{key}`' for key in known)}" if known else "no such key"
    fix = f"write `{near[0]}`" if near else "remove it"
    return Problem(document.where(path, key=True), saw, want, fix)


def _known_keys(model: type[BaseModel], path: list[str | int]) -> set[str]:
    """Keys that the models at a path know; of all members where the model has a union."""
    models = {model}
    for step in path:
        annotations = [
            info.annotation
            for at in models
            for name, info in at.model_fields.items()
            if step == (info.alias or name)
        ]
        if annotations:
            models = {found for annotation in annotations for found in _models_in(annotation)}
    return {info.alias or name for at in models for name, info in at.model_fields.items()}


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _want(entry: "ErrorDetails") -> str:
    words = _WANTED.get(entry["type"])
    if words is not None:
        return words
    message = entry["msg"]
    for prefix in _PREFIXES:
        message = message.removeprefix(prefix)
    return message[:1].lower() + message[1:]


def _fix(entry: "ErrorDetails") -> str:
    given = entry["input"]
    if entry["type"] == "string_type" and isinstance(given, bool | int | float):
        return "quote it"
    if entry["type"] in _CHOICES and isinstance(given, str):
        choices = [part.strip("'") for part in _want(entry).replace(" or ", ", ").split(", ")]
        near = get_close_matches(given, choices, n=1)
        return f"write `{near[0]}`" if near else ""
    return ""


def _value(given: object) -> str:
    if isinstance(given, dict):
        return "a mapping"
    if isinstance(given, list):
        return f"a list of {len(given)}"
    if given is None or isinstance(given, bool):
        return f"`{str(given).lower().replace('none', 'null')}`"
    return f'"{shown(given)}"' if isinstance(given, str) else f"`{given}`"


def _below(path: list[str | int]) -> str:
    """Where a value is, for people: ` in `units[0].files``; empty at the root."""
    words = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return f" in `{shown(words.removeprefix('.'))}`" if path else ""
