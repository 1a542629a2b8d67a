# SPDX-License-Identifier: Apache-2.0
"""FT511: statements of one plan agree on the plan."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class PlanSeeds(StatementRule):
    """Statements that do not agree on their plan."""

    id = "FT511"
    slug = "plan-seeds"
    title = "statements of one plan agree on the plan"
    level = Level.ROUTE
    refuses = (
        "A trusted statement whose plan another trusted statement, brought or in the target "
        "branch about the same cell, tells with other seeds or at another commit."
    )
    why = (
        "A plan chooses seeds and commit once, before anything runs. Whoever measured must have "
        "chosen otherwise, and may have chosen what passes."
    )
    blind = (
        "A plan of which only one statement exists; the signing job compares that one with its "
        "plan."
    )
    fix = "plan, measure and sign again, with `fasttrack evidence sign --plan`"
    want = "one commit, and one choice of seeds for a cell"
