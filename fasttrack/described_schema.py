# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas whose fields are described by the text under them in the source.

The text is read when a schema is asked for; pydantic would read it at every import, which costs
more than all of a short command.
"""

import ast
import inspect
import sys
from typing import Any, Literal

from pydantic import TypeAdapter

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def described_schema(
    model: type, name: str, title: str, mode: Literal["validation", "serialization"] = "validation"
) -> dict[str, Any]:
    """The schema (draft 2020-12) of a model or dataclass, with a description for every field.

    Args:
        model: the outermost class; what it refers to is read from the same module.
        name: the schema's name; its `$id` is `<name>.schema.json`.
        title: the schema's title.
        mode: what is described: input that is read, or output that is written.
    """
    schema = TypeAdapter(model).json_schema(mode=mode)
    module = sys.modules[model.__module__]
    words = _attribute_docstrings(inspect.getsource(module))
    for definition in (schema, *schema.get("$defs", {}).values()):
        _describe(definition, words, getattr(module, definition["title"], None))
    return {"$schema": DIALECT, "$id": f"{name}.schema.json", **schema, "title": title}


def _describe(
    definition: dict[str, Any], words: dict[tuple[str, str], str], owner: type | None
) -> None:
    fields = getattr(owner, "model_fields", {})
    by_alias = {field.alias: name for name, field in fields.items() if field.alias}
    for name, field in definition.get("properties", {}).items():
        field["title"] = name
        field["description"] = words[definition["title"], by_alias.get(name, name)]


def _attribute_docstrings(source: str) -> dict[tuple[str, str], str]:
    """(class, field) to the text under the field."""
    words: dict[tuple[str, str], str] = {}
    for node in ast.parse(source).body:
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
