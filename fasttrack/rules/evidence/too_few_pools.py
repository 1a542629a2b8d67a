# SPDX-License-Identifier: Apache-2.0
"""FT518: as many pools agree as the policy wants."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class TooFewPools(StatementRule):
    """Statements that wait for another pool."""

    id = "FT518"
    slug = "too-few-pools"
    title = "as many pools agree as the policy wants"
    level = Level.NOTE
    refuses = "A brought statement that covers its cell but for the number of pools that say so."
    why = "It covers nothing until others agree."
    blind = "Whether two pools are independent."
    fix = "have the cell measured by another pool too"
    want = "as many pools as `trust.thresholds` asks for"
