# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas whose fields are described by the text under them in the source.

The text is read when a schema is asked for; pydantic would read it at every import, which costs
more than all of a short command.
"""

import ast
import inspect
import sys
from dataclasses import is_dataclass
from functools import cache
from typing import Any, Literal, get_args, get_type_hints

from pydantic import BaseModel, TypeAdapter

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def described_schema(
    model: Any, name: str, title: str, mode: Literal["validation", "serialization"] = "validation"
) -> dict[str, Any]:
    """The schema (draft 2020-12) of a model or dataclass, with a description for every field.

    Args:
        model: the outermost class, or a union of classes; what they refer to may be in other
            modules.
        name: the schema's name; its `$id` is `<name>.schema.json`.
        title: the schema's title.
        mode: what is described: input that is read, or output that is written.
    """
    schema = TypeAdapter(model).json_schema(mode=mode)
    records = _records(model, {})
    for definition in (schema, *schema.get("$defs", {}).values()):
        if "properties" in definition:
            _describe(definition, records[definition["title"]])
    return {"$schema": DIALECT, "$id": f"{name}.schema.json", **schema, "title": title}


def _records(annotation: Any, found: dict[str, type]) -> dict[str, type]:
    """Name to class, of every model and dataclass that an annotation leads to."""
    if not _is_record(annotation):
        for argument in get_args(annotation):
            _records(argument, found)
    elif annotation.__name__ not in found:
        found[annotation.__name__] = annotation
        for field in _field_types(annotation):
            _records(field, found)
    elif found[annotation.__name__] is not annotation:
        raise TypeError(f"two classes of one schema are called {annotation.__name__}")
    return found


def _is_record(annotation: Any) -> bool:
    return isinstance(annotation, type) and (
        is_dataclass(annotation) or issubclass(annotation, BaseModel)
    )


def _field_types(record: type) -> list[Any]:
    if issubclass(record, BaseModel):
        return [field.annotation for field in record.model_fields.values()]
    return list(get_type_hints(record).values())


def _describe(definition: dict[str, Any], record: type) -> None:
    fields = getattr(record, "model_fields", {})
    by_alias = {field.alias: name for name, field in fields.items() if field.alias}
    for name, field in definition["properties"].items():
        field["title"] = name
        field["description"] = _words_under(record, by_alias.get(name, name))


def _words_under(record: type, field: str) -> str:
    """The text under a field, in the class itself or in the nearest base that has one."""
    for owner in record.__mro__:
        if field in inspect.get_annotations(owner):
            words = _attribute_docstrings(owner.__module__).get((owner.__name__, field))
            if words is not None:
                return words
    raise KeyError(f"{record.__name__}.{field} has no text under it")


@cache
def _attribute_docstrings(module: str) -> dict[tuple[str, str], str]:
    """(class, field) to the text under the field, for the classes of one module."""
    words: dict[tuple[str, str], str] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
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
