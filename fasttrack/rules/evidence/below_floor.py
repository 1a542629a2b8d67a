# SPDX-License-Identifier: Apache-2.0
"""FT530: there is enough of it."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class BelowFloor(StatementRule):
    """Runs that were too short."""

    id = "FT530"
    slug = "below-floor"
    title = "there is enough of it"
    level = Level.NOTE
    refuses = (
        "A brought trusted kernel test or stress run with fewer seeds or iterations, or a shorter "
        "profile, than the policy and the manifest ask for."
    )
    why = "It covers nothing."
    blind = "Seeds that show the same."
    fix = "plan again: plans choose as many as the floors ask"
    want = "the policy's floors, and the manifest's bars"
