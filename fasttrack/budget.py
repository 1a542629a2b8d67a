# SPDX-License-Identifier: Apache-2.0
"""How much of each budget of the policy a change uses; rules and reports read the same numbers."""

from collections.abc import Mapping
from dataclasses import dataclass

from fasttrack.case import Case
from fasttrack.errors import FactUnavailable

UNKNOWN = -1
"""An amount that could not be told; the rule that needs it reports so."""


@dataclass(frozen=True)
class Use:
    """Amount used and the policy's limit."""

    used: int
    limit: int


def budget_use(case: Case) -> Mapping[str, Use]:
    """Use of the budgets that a reader wants to see, in the order of the policy file."""
    budgets = case.policy.budgets
    return {
        "files": Use(len(case.entries), budgets.files),
        "added_lines": Use(_known_added_lines(case), budgets.added_lines),
    }


def added_lines(case: Case) -> int:
    """Added lines over all changed files but evidence; a submodule has none.

    Raises:
        FactUnavailable: when a file is too large to be counted.
    """
    return sum(case.change.line_counts(entry)[0] for entry in case.entries if not entry.is_gitlink)


def _known_added_lines(case: Case) -> int:
    try:
        return added_lines(case)
    except FactUnavailable:
        return UNKNOWN
