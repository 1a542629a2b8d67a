# SPDX-License-Identifier: Apache-2.0
"""FT522: evidence is young enough."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class TooOld(StatementRule):
    """Statements past their age."""

    id = "FT522"
    slug = "too-old"
    title = "evidence is young enough"
    level = Level.NOTE
    refuses = (
        "A brought trusted statement that is older than the policy's `trust.max_age_days` for its "
        "kind."
    )
    why = "It covers nothing: what lies outside of every digest has moved on."
    blind = "When the run really ended."
    fix = "measure again"
    want = "a run within the maximum age"
