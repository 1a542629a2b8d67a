# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of manifests, generated from the models."""

import ast
import inspect
from typing import Any

from fasttrack.manifest import model


def json_schema() -> dict[str, Any]:
    """The schema (draft 2020-12), with a title and a description for every field.

    It says what each field may hold. What fields say about each other, `load_manifest` checks.
    """
    schema = model.Manifest.model_json_schema()
    words = _attribute_docstrings()
    _describe(schema, words)
    for definition in schema["$defs"].values():
        _describe(definition, words)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "manifest.schema.json",
        **schema,
        "title": "Scope manifest",
    }


def _describe(definition: dict[str, Any], words: dict[tuple[str, str], str]) -> None:
    owner = definition["title"]
    for name, field in definition.get("properties", {}).items():
        field["title"] = name
        field["description"] = words[owner, name]


def _attribute_docstrings() -> dict[tuple[str, str], str]:
    """(class, field) to the text under the field.

    Read from the source when a schema is asked for: pydantic would read it at every import.
    """
    words: dict[tuple[str, str], str] = {}
    for node in ast.parse(inspect.getsource(model)).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for field, text in zip(node.body, node.body[1:], strict=False):
            match field, text:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str() as words_under)),
                ):
                    words[node.name, name] = " ".join(words_under.split())
    return words
