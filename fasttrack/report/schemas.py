# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of everything that is read or written, generated from the models."""

import json
from collections.abc import Callable, Mapping
from functools import partial, reduce
from operator import or_
from typing import Annotated, Any

from pydantic import Field

from fasttrack.audit.approvals import Approvals
from fasttrack.audit.contract import Contract
from fasttrack.audit.launches import Recorded
from fasttrack.described_schema import described_schema
from fasttrack.evidence.predicates import PREDICATES
from fasttrack.evidence.statement import written_form
from fasttrack.manifest.model import Manifest
from fasttrack.policy.model import Policy
from fasttrack.report.record import VerdictRecord


def _evidence_schema() -> dict[str, Any]:
    forms: Any = reduce(or_, (written_form(predicate_type) for predicate_type in PREDICATES))
    statement = Annotated[forms, Field(discriminator="predicate_type")]
    return described_schema(statement, "evidence", "Evidence statement")


SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "approvals": partial(described_schema, Approvals, "approvals", "Approvals of an audit"),
    "contract": partial(described_schema, Contract, "contract", "Contract of a kernel"),
    "evidence": _evidence_schema,
    "launches": partial(described_schema, Recorded, "launches", "Recorded launches"),
    "manifest": partial(described_schema, Manifest, "manifest", "Scope manifest"),
    "policy": partial(described_schema, Policy, "policy", "Policy"),
    "verdict": partial(described_schema, VerdictRecord, "verdict", "Verdict", "serialization"),
}
"""Name to generator; shipped as `fasttrack/schemas/<name>.schema.json`."""


def schema_text(name: str) -> str:
    """One schema as JSON text with sorted keys."""
    return json.dumps(SCHEMAS[name](), indent=2, sort_keys=True) + "\n"
