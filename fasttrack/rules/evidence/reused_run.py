# SPDX-License-Identifier: Apache-2.0
"""FT506: a run says one thing of a cell."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class ReusedRun(StatementRule):
    """Runs that say two things."""

    id = "FT506"
    slug = "reused-run"
    title = "a run says one thing of a cell"
    level = Level.BLOCK
    refuses = (
        "A brought statement of a run that another trusted statement tells otherwise of the same "
        "cell, brought or in the target branch."
    )
    why = (
        "A run is measured once. Two answers under one id mean that one of them was made up after "
        "the fact, and nobody can tell which."
    )
    blind = "Two runs of which only the better one was ever signed."
    fix = "leave the file out, and measure the cell again under a new plan"
    want = "one content for one run and cell"
