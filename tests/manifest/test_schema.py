# SPDX-License-Identifier: Apache-2.0
"""The generated JSON Schema says what the loader accepts, and describes every field."""

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml

from fasttrack.report.schemas import SCHEMAS

from .builders import VALID
from .edits import cases, edited

json_schema = SCHEMAS["manifest"]


def as_json(text: str) -> Any:
    return json.loads(json.dumps(yaml.safe_load(text), default=str))


def records(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    yield from (d for d in schema["$defs"].values() if "properties" in d)


def every_pattern(node: object) -> Iterator[str]:
    """The patterns of a schema, wherever they stand."""
    if isinstance(node, dict) and isinstance(pattern := node.get("pattern"), str):
        yield pattern
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for child in children:
        yield from every_pattern(child)


def test_the_valid_manifest_satisfies_the_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())
    jsonschema.validate(as_json(VALID), json_schema(), jsonschema.Draft202012Validator)


def test_every_record_forbids_other_keys_and_describes_every_field() -> None:
    for record in records(json_schema()):
        assert record["additionalProperties"] is False
        assert record["description"]
        for name, field in record["properties"].items():
            assert field["title"] == name
            assert field["description"].endswith("."), f"{record['title']}.{name}"


@pytest.mark.parametrize(
    "why",
    [
        "an unknown key is named with the nearest known one",
        "an unknown axis would be an axis that nothing visits",
        "a missing bound is not unbounded",
        "an unknown tier is not a claim",
        "a version range is not what the variants were built with",
    ],
)
def test_the_schema_refuses_what_a_single_field_can_tell(why: str) -> None:
    [case] = [c for c in cases("errors.yaml") if c["why"] == why]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(as_json(edited(case["edit"])), json_schema())


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_no_pattern_asks_for_the_letters_of_all_scripts_which_take_long_to_prepare(
    name: str,
) -> None:
    patterns = [p for p in every_pattern(SCHEMAS[name]()) if re.search(r"\\[wdspWDSP]", p)]
    assert patterns == []


def test_the_schema_names_itself_without_a_host() -> None:
    schema = json_schema()
    assert (schema["$id"], schema["title"]) == ("manifest.schema.json", "Scope manifest")
    assert json_schema() == schema
