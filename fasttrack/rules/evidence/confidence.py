# SPDX-License-Identifier: Apache-2.0
"""FT515: evaluations are sure enough."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class Confidence(StatementRule):
    """Intervals that are narrow because they are unsure."""

    id = "FT515"
    slug = "confidence"
    title = "evaluations are sure enough"
    level = Level.ROUTE
    refuses = "A trusted evaluation whose interval has less than 95 % confidence."
    why = (
        "Less confidence makes any interval narrow enough to pass, and coverage holds the "
        "interval against the policy's largest drop."
    )
    blind = "How the interval was computed."
    fix = "compute the interval at 95 % and sign again"
    want = "a confidence of at least 0.95"
