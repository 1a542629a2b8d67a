# SPDX-License-Identifier: Apache-2.0
"""FT510: no run ends after today."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class FutureRun(StatementRule):
    """Runs of days to come."""

    id = "FT510"
    slug = "future-run"
    title = "no run ends after today"
    level = Level.ROUTE
    refuses = "A trusted statement of a run that ended after the judged day."
    why = (
        "A date ahead makes evidence live longer than the policy lets it, or the runner's clock "
        "can not be trusted with its age."
    )
    blind = "Dates that are wrong by less than a day, or too old."
    fix = "set the runner's clock and measure again; or judge with the right `--as-of`"
    want = "a run that has ended"
