# SPDX-License-Identifier: Apache-2.0
"""YAML that every reader reads alike, with the place of each value.

A manifest is read by this program, by people and by other tools. What could mean two things is
an error here: a key given twice, anchors, aliases, merge keys and tags, a plain `yes` or `010`
that YAML 1.1 and 1.2 take for different values, tabs, and line breaks that only one version
knows. All errors of a text are collected in one pass.
"""

import json
from datetime import date
from typing import TYPE_CHECKING, TypeVar

from fasttrack.errors import InputError
from fasttrack.strict_yaml.composer import Composer
from fasttrack.strict_yaml.document import Document
from fasttrack.strict_yaml.text import Problems, UnreadableError, checked_text

if TYPE_CHECKING:
    from pydantic import BaseModel

    Model = TypeVar("Model", bound=BaseModel)

__all__ = ["Document", "parse", "validate"]


def parse(text: str | bytes, source: str) -> Document:
    """Reads one YAML document strictly.

    Args:
        text: the text, or its bytes in UTF-8.
        source: how messages name the text, such as `origin/main:manifests/policy.yaml`.

    Raises:
        InputError: with every problem found (at most 100), each with its place.
    """
    problems = Problems(source)
    try:
        root = Composer(checked_text(text, problems), problems).document()
    except UnreadableError:
        root = None
    if problems.found or root is None:
        raise InputError(problems.found)
    return Document(source, root)


def validate(document: Document, model: "type[Model]") -> "Model":
    """Builds a pydantic model from a document, strictly.

    The data goes through JSON, where strictness means what a file can say: a list makes a
    tuple and text makes an enum member, but `"3"` is no number and `1` is no boolean.

    Raises:
        InputError: with every problem found, each at the line and column of its value.
    """
    # Pydantic takes most of the start-up time, and reading alone does not need it.
    from pydantic import ValidationError  # noqa: PLC0415

    from fasttrack.strict_yaml.model_problems import problems_of  # noqa: PLC0415

    text = json.dumps(document.data, default=date.isoformat)
    try:
        return model.model_validate_json(text, strict=True)
    except ValidationError as error:
        found = problems_of(error, document, model)
    raise InputError(found)
