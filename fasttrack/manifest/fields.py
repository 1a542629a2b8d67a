# SPDX-License-Identifier: Apache-2.0
"""Field types that the models of a manifest share: bounded, and read without coercion."""

from collections.abc import Callable
from datetime import date
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from fasttrack import globs

MAX_ITEMS = 64
"""Items of a list. Longer lists are not read by people, and bound the scope algebra."""
MAX_COUNT = 1 << 40
"""Counts and lengths; far above every machine, far below 64 bits when two are multiplied."""

T = TypeVar("T")


def _value(check: Callable[[T], str | None]) -> AfterValidator:
    """A validator over a function that returns what is wanted instead, or None when all is well."""

    def read(value: T) -> T:
        if wanted := check(value):
            raise PydanticCustomError("text", "Input should be {wanted}", {"wanted": wanted})
        return value

    return AfterValidator(read)


def _path_fault(path: str) -> str | None:
    body = path.removesuffix("/")
    if path.startswith("/") or "\\" in path or not path.isascii() or not path.isprintable():
        return "a repository path in printable ASCII, separated by '/', without a leading '/'"
    if any(segment in {"", ".", ".."} for segment in body.split("/")):
        return "a repository path without empty, '.' or '..' segments"
    if "*" in path or "?" in path:
        return "a path, not a pattern: '*' and '?' are not allowed here"
    return None


def _file_fault(path: str) -> str | None:
    if path.endswith("/"):
        return "a file, not a directory: without a '/' at the end"
    return _path_fault(path)


def _glob_fault(pattern: str) -> str | None:
    fault = globs.check_pattern(pattern)
    return f"a pattern of repository paths ({fault})" if fault else None


def _text_fault(text: str) -> str | None:
    if not text.strip() or any(ord(c) < 32 and c != "\n" for c in text):
        return "words, without control characters"
    return None


def _test_id_fault(test_id: str) -> str | None:
    if not test_id.isprintable() or " " in test_id.split("::", maxsplit=1)[0]:
        return "a test id such as 'tests/test_x.py::test_y'"
    return _file_fault(test_id.split("::", maxsplit=1)[0])


def _not_empty(values: tuple[T, ...]) -> tuple[T, ...]:
    # Not `min_length`: that also counts a list whose items are all wrong as empty.
    if not values:
        raise PydanticCustomError("empty", "Input should be a list with at least one item")
    return values


def _whole(value: object) -> object:
    # `true` and `1.0` equal 1, and other readers of the format take neither for it.
    if type(value) is not int:
        raise PydanticCustomError("format", "Input should be the whole number 1")
    return value


def spelled(value: float) -> str:
    """The one spelling of a `Thousandths`: no zeros or point at its end, and no -0."""
    return f"{abs(value):.3f}".rstrip("0").rstrip(".")


FirstFormat = Annotated[Literal[1], BeforeValidator(_whole)]
"""Version 1 of a file format."""
Listed = Annotated[
    tuple[T, ...],
    AfterValidator(_not_empty),
    Field(max_length=MAX_ITEMS, json_schema_extra={"minItems": 1}),
]
"""A list with at least one item: an empty list would read as "any"."""

Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
"""Lower-case name, at most 64 characters."""
Handle = Annotated[
    str, Field(pattern=r"^@?[A-Za-z0-9][A-Za-z0-9-]{0,38}(/[A-Za-z0-9][A-Za-z0-9._-]{0,99})?$")
]
"""A forge account, or `organisation/team`."""
Path = Annotated[str, Field(min_length=1, max_length=512), _value(_path_fault)]
"""A file, or a directory when it ends in `/`."""
FilePath = Annotated[str, Field(min_length=1, max_length=512), _value(_file_fault)]
"""A file of the repository."""
Glob = Annotated[str, Field(min_length=1, max_length=512), _value(_glob_fault)]
"""A pattern of repository paths, as `fasttrack.globs` reads it."""
TestId = Annotated[str, Field(min_length=1, max_length=512), _value(_test_id_fault)]
"""`file` or `file::node` as pytest prints it."""
Text = Annotated[str, Field(min_length=1, max_length=2000), _value(_text_fault)]
"""Words for people."""
Symbol = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.]{0,199}$")]
"""A dotted name inside a file, such as `Model.forward`."""
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
"""A whole number from 1."""
CountOrZero = Annotated[int, Field(ge=0, le=MAX_COUNT)]
"""A whole number from 0."""
Positive = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]
"""A finite number above 0."""
Thousandths = Annotated[
    float,
    Field(ge=0, le=1e6, allow_inf_nan=False),
    _value(lambda value: None if round(value, 3) == value else "a number of at most 3 decimals"),
]
"""A number from 0 that has one spelling (`spelled`), as cells need it."""
Number = Annotated[float, Field(ge=-1e12, le=1e12, allow_inf_nan=False)]
"""A finite number."""
Day = date
"""A UTC day."""
