# SPDX-License-Identifier: Apache-2.0
"""FT512: runs of the same bytes agree."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class Disagreement(StatementRule):
    """Cells that failed once and passed once."""

    id = "FT512"
    slug = "disagreement"
    title = "runs of the same bytes agree"
    level = Level.ROUTE
    refuses = (
        "A brought statement, or the target's of a cell that the change owes, where trusted "
        "statements of the same cell and the same bytes disagree: one failed, and another did not."
    )
    why = (
        "Measured often enough, a rare failure passes once. Coverage takes the best answer; a "
        "person must ask why there was another."
    )
    blind = "Failures that nobody signed, or of other bytes, those around the unit included."
    fix = "find the cause of the failure and mend it; the new bytes are measured anew"
    of_relied = True
    want = "runs that all show the same"
