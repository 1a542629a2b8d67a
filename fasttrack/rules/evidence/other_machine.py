# SPDX-License-Identifier: Apache-2.0
"""FT523: evidence is of the cell's machine."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class OtherMachine(StatementRule):
    """Statements of other machines."""

    id = "FT523"
    slug = "other-machine"
    title = "evidence is of the cell's machine"
    level = Level.NOTE
    refuses = (
        "A brought trusted statement that was measured on other hardware, on a slice of a GPU, or "
        "on fewer or more devices than the cell asks for."
    )
    why = "It covers nothing."
    blind = "A machine that tells of itself what is not so."
    fix = "measure on the cell's hardware"
    want = "the hardware that the cell names"
