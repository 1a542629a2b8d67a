# SPDX-License-Identifier: Apache-2.0
"""FT520: evidence speaks of cells that a scope asks for."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class UnaskedCell(StatementRule):
    """Statements that answer no question."""

    id = "FT520"
    slug = "unasked-cell"
    title = "evidence speaks of cells that a scope asks for"
    level = Level.NOTE
    refuses = (
        "A brought trusted statement about a cell that no manifest asks for after the merge, at "
        "whatever tier."
    )
    why = "It covers nothing; the plan that it comes from was another scope's."
    blind = "Cells of a manifest that can not be read, or whose points are too many to list."
    fix = "plan again, and measure what the scope asks for"
    want = "one of the cells that `fasttrack scope points` lists"
