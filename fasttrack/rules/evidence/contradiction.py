# SPDX-License-Identifier: Apache-2.0
"""FT507: statements do not contradict themselves."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class Contradiction(StatementRule):
    """Statements that can not be true."""

    id = "FT507"
    slug = "contradiction"
    title = "statements do not contradict themselves"
    level = Level.BLOCK
    refuses = (
        "A trusted statement that says what can not be: percentiles out of order, an interval "
        "upside down or without its own value, more failures than runs, more negative controls "
        "caught than given, a ratio that does not follow from its medians, another metric than "
        "its cell's."
    )
    why = "No tool that measured wrote it. Either the tool or the statement was tampered with."
    blind = "Numbers that are made up and fit each other."
    fix = "find out what wrote it; measure and sign again with an unaltered tool"
    want = "a statement that one run can have written"
