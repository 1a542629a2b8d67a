# SPDX-License-Identifier: Apache-2.0
"""What a later contract says more loosely than an earlier one, over contracts of two parameters."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.audit.contract import Class, Contract
from fasttrack.audit.promises import loosened

STRICT = ("dynamic", "metadata")
POINTERS = st.sampled_from([one.value for one in Class])
FIELDS = st.fixed_dictionaries(
    {"holds": POINTERS},
    optional={
        "pointees": POINTERS,
        "sentinel": st.booleans(),
        "after": st.just("f"),
        "rounds": st.integers(1, 3),
        "scope": st.sampled_from(["gpu", "sys"]),
        "array": st.sampled_from(["own", "all", "same"]),
        "announces": st.sampled_from(["nothing", ["y"]]),
    },
)
CONTRACTS = st.builds(
    lambda fields, pdl, why: contract(fields, pdl=pdl, early_trigger=why),
    FIELDS, st.booleans(), st.sampled_from([None, "They wait."]),
)  # fmt: skip


def contract(fields: dict[str, Any], **others: Any) -> Contract:
    """A contract of `x`, with these fields, and `y`."""
    document = {
        "contract": 1, "kernel": "k", "block": [128, 1, 1], "cluster": 1, "pdl": True,
        "parameters": [{"name": "x", **fields}, {"name": "y", "holds": "out"}],
        "reads": ["x"], "writes": ["y"],
    }  # fmt: skip
    return Contract.model_validate(document | others, strict=False)


@given(CONTRACTS)
def test_a_contract_is_not_looser_than_itself(one: Contract) -> None:
    assert list(loosened(one, one)) == []


@given(CONTRACTS)
def test_nothing_is_stricter_than_early_launches_and_memory_that_changes(one: Contract) -> None:
    rounds = one.parameters[0].rounds
    strictest = contract({"holds": "dynamic", "pointees": "dynamic", "rounds": rounds})
    told = " ".join(loosened(one, strictest))
    assert "says now" not in told
    fields = one.parameters[0]
    loose = fields.holds not in STRICT or fields.pointees not in (*STRICT, None)
    loose |= not one.pdl or one.early_trigger is not None or fields.sentinel
    loose |= fields.after is not None or fields.array is not None or fields.announces is not None
    if loose:
        assert [*loosened(strictest, one)]


@pytest.mark.parametrize("holds", [one for one in Class if one.value not in STRICT])
def test_a_class_that_asks_less_of_reads_is_told(holds: Class) -> None:
    assert f"says now that x is {holds}" in loosened(
        contract({"holds": "dynamic"}), contract({"holds": holds.value})
    )


def test_what_is_said_of_a_parameter_that_is_new_is_no_loosening() -> None:
    base, added = contract({"holds": "dynamic"}), {"name": "w", "holds": "static"}
    head = base.model_dump(mode="json", exclude_none=True)
    head["parameters"] = [*head["parameters"], added]
    assert list(loosened(base, Contract.model_validate(head, strict=False))) == []
