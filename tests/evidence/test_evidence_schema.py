# SPDX-License-Identifier: Apache-2.0
"""The shipped schema takes what is signed."""

import json

import jsonschema
import pytest

from fasttrack.report.schemas import SCHEMAS
from fasttrack.vocabulary import Kind
from tests.evidence.strategies import good


@pytest.mark.parametrize("kind", Kind)
def test_a_payload_fits_the_shipped_schema(kind: Kind) -> None:
    whole = json.loads(good(kind).to_bytes())
    jsonschema.validate(whole, SCHEMAS["evidence"]())
    whole["predicate"]["note"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(whole, SCHEMAS["evidence"]())
