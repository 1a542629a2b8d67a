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
        "Brought statements that cover cells of one unit's bytes, where, with the target's "
        "statements, files that the unit or its tests import directly from outside the roots had "
        "no one state with which all of the cells were measured."
    )
    why = (
        "Each run started from the target branch as it once was. With a choice for each cell, "
        "cells can pass that fail together; a person must ask why there was one."
    )
    blind = "Deeper dependencies."
    fix = "measure all cells of the unit from one plan"
    want = "one state for all cells"
