# SPDX-License-Identifier: Apache-2.0
"""Which cells need not be measured again."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fasttrack.evidence.covered import covered_by
from fasttrack.evidence.digest import InputFile
from fasttrack.evidence.inputs import UnitInputs
from fasttrack.evidence.statement import Statement
from fasttrack.evidence.trust import Judged
from tests.evidence.strategies import statements


@settings(max_examples=30)
@given(statements(), st.sampled_from(["", "accepted", "digest", "tests", "boundary", "undeclared"]))
def test_a_statement_covers_when_it_is_accepted_and_binds_to_these_bytes(
    statement: Statement, wrong: str
) -> None:
    facts = statement.predicate.inputs
    update: dict[str, Any] = {"undeclared": ("a.py",) if wrong == "undeclared" else ()}
    if wrong in {"digest", "tests"}:
        update[wrong] = "0" * 63 + ("1" if getattr(facts, wrong)[-1] == "0" else "0")
    told = statement.predicate.model_copy(update={"inputs": facts.model_copy(update=update)})
    judged = Judged(Statement(statement.predicate_type, told), wrong != "accepted", frozenset(), ())
    boundary = [InputFile(f.path, "100644", f.sha256, "") for f in facts.boundary]
    if wrong == "boundary":
        boundary.append(InputFile("new.py", "100644", "0" * 64, ""))
    inputs = UnitInputs(facts.unit, (), (), tuple(boundary))
    inputs.__dict__.update(digest=facts.digest, tests_digest=facts.tests)
    assert covered_by([judged])(statement.cell, inputs) == (not wrong)
    assert not covered_by([])(statement.cell, inputs)
