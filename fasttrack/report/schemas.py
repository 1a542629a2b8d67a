# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of everything that is read or written, generated from the models."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from fasttrack.manifest import schema as manifest_schema
from fasttrack.policy.model import Policy
from fasttrack.report.record import VerdictRecord


def _policy() -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "policy.schema.json",
        **Policy.model_json_schema(),
    }


def _verdict() -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "verdict.schema.json",
        **VerdictRecord.model_json_schema(mode="serialization"),
    }


SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "manifest": manifest_schema.json_schema,
    "policy": _policy,
    "verdict": _verdict,
}
"""Name to generator; shipped as `fasttrack/schemas/<name>.schema.json`."""


def schema_text(name: str) -> str:
    """One schema as JSON text with sorted keys."""
    return json.dumps(SCHEMAS[name](), indent=2, sort_keys=True) + "\n"
