# SPDX-License-Identifier: Apache-2.0
"""Manifest text to a checked `Manifest`, or to everything that is wrong with it."""

import json
from collections.abc import Iterator
from datetime import date
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from fasttrack import strict_yaml
from fasttrack.errors import InputError, Problem
from fasttrack.manifest import conditions, consistency
from fasttrack.manifest.consistency import Fault, Sections
from fasttrack.manifest.model import (
    Claim,
    Code,
    Evidence,
    Lease,
    Manifest,
    Refusal,
    Region,
    Unit,
    Waiver,
    Weights,
)

Model = TypeVar("Model", bound=BaseModel)


def load_manifest(text: bytes | str, source: str) -> Manifest:
    """Parses and checks a manifest.

    Args:
        text: the file's content.
        source: how messages name it, such as `manifests/kimi-k3-decode.yaml`.

    Raises:
        InputError: with every problem of the file, each at its line and column.
    """
    document = strict_yaml.parse(text, source)  # (1) text to data
    problems: list[Problem] = []
    manifest = None
    try:
        manifest = strict_yaml.validate(document, Manifest)  # (2) each field alone
    except InputError as error:
        problems += error.problems
    # A manifest that was read whole needs no second reading of its parts.
    sections = _sections(document.data) if manifest is None else _sections_of(manifest)
    for fault in _faults(sections, document.data):  # (3) fields together
        problems.append(Problem(document.where(fault.loc), fault.saw, fault.want, fault.fix))
    if manifest is None or problems:
        raise InputError(problems)
    return manifest


def _faults(sections: Sections, data: object) -> Iterator[Fault]:
    yield from consistency.repeated_values(data)
    if sections.weights is not None:
        yield from consistency.weights_faults(sections.weights)
    if sections.code is not None:
        yield from consistency.code_faults(sections.code)
    yield from consistency.unit_faults(sections.units, sections.code)
    yield from conditions.region_faults(sections.scope)
    yield from conditions.claim_faults(sections.claims, sections.unit_ids)
    if sections.lease is not None:
        sponsor = data.get("sponsor") if isinstance(data, dict) else None
        yield from consistency.lease_faults(sections.lease, sections.code, sponsor)
    yield from consistency.list_faults(sections)
    yield from consistency.toolchain_faults(
        data.get("toolchain") if isinstance(data, dict) else None
    )


def _sections(data: object) -> Sections:
    """The parts of the data that are valid alone."""
    given = data if isinstance(data, dict) else {}
    return Sections(
        weights=_one(Weights, given.get("weights")),
        code=_one(Code, given.get("code")),
        units=_many(Unit, given.get("units")),
        unit_ids=_ids(given.get("units")),
        scope=_many(Region, given.get("scope")),
        refuses=_many(Refusal, given.get("refuses")),
        evidence=_one(Evidence, given.get("evidence")),
        claims=_many(Claim, given.get("claims")),
        lease=_one(Lease, given.get("lease")),
        waivers=_many(Waiver, given.get("waivers")),
    )


def _sections_of(manifest: Manifest) -> Sections:
    return Sections(
        weights=manifest.weights,
        code=manifest.code,
        units=dict(enumerate(manifest.units)),
        unit_ids=frozenset(unit.id for unit in manifest.units),
        scope=dict(enumerate(manifest.scope)),
        refuses=dict(enumerate(manifest.refuses)),
        evidence=manifest.evidence,
        claims=dict(enumerate(manifest.claims)),
        lease=manifest.lease,
        waivers=dict(enumerate(manifest.waivers)),
    )


def _one(model: type[Model], value: object) -> Model | None:
    if not isinstance(value, dict):
        return None
    try:
        return model.model_validate_json(json.dumps(value, default=date.isoformat), strict=True)
    except ValidationError:
        return None  # (2) has reported it


def _many(model: type[Model], values: object) -> dict[int, Model]:
    if not isinstance(values, list):
        return {}
    read = ((i, _one(model, value)) for i, value in enumerate(values))
    return {i: item for i, item in read if item is not None}


def _ids(values: object) -> frozenset[str]:
    """Ids of a list's items, also of those that can not be read otherwise."""
    items = values if isinstance(values, list) else []
    ids = (item.get("id") for item in items if isinstance(item, dict))
    return frozenset(i for i in ids if isinstance(i, str))
