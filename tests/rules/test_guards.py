# SPDX-License-Identifier: Apache-2.0
"""Every rule and every limit is guarded by a case; `guards` says how the matrix is made."""

import inspect
import json
import re
import sys
from typing import Any

import pytest

from fasttrack.rules import RULES
from fasttrack.rules.base import Rule

from .guards import STORED, limits_of, matrix, shown


@pytest.fixture(scope="module")
def computed() -> dict[str, Any]:
    return matrix()


def test_without_any_rule_a_case_turns_red(computed: dict[str, Any]) -> None:
    print("\n" + shown(computed))
    assert [rule for rule, row in computed.items() if not row["red_without_it"]] == []


def test_any_limit_that_moves_by_one_turns_a_case_red_on_both_sides(
    computed: dict[str, Any],
) -> None:
    unguarded = [
        f"{rule} {limit} {side}"
        for rule, row in computed.items()
        for limit, red in row["limits"].items()
        for side in ("higher", "lower")
        if not red[side]
    ]
    assert unguarded == []


def test_the_stored_matrix_is_the_computed_one(computed: dict[str, Any]) -> None:
    assert json.loads(STORED.read_text(encoding="utf-8")) == computed, (
        "run `cd tests && python -m rules.guards`"
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_budget_that_a_rule_reads_is_among_its_limits(rule: Rule) -> None:
    source = inspect.getsource(sys.modules[type(rule).__module__])
    read = {f"budgets.{name}" for name in re.findall(r"\bbudgets\.(\w+)", source)}
    quoted = {f"budgets.{name}" for name in re.findall(r"`budgets\.(\w+)`", source)}
    assert read | quoted <= set(limits_of(rule))
