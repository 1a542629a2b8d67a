# SPDX-License-Identifier: Apache-2.0
"""FT533: one state of the files just outside the roots passed in all cells."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class MixedBoundary(StatementRule):
    """Cells that were each measured with another state of their surroundings."""

    id = "FT533"
    slug = "mixed-boundary"
    title = "one state of the files just outside the roots passed in all cells"
    level = Level.ROUTE
    refuses = (
        "Statements that cover cells of one unit's bytes, brought or the target's, where files "
        "that the unit or its tests import directly from outside the roots had no one state with "
        "which all of the cells were measured; the target's only of cells that the change owes."
    )
    why = (
        "Each run started from the target branch as it once was. With a choice for each cell, "
        "cells can pass that fail together; a person must ask why there was one."
    )
    blind = "Deeper dependencies."
    fix = "measure all cells of the unit from one plan"
    of_relied = True
    want = "one state for all cells"
