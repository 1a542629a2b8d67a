# SPDX-License-Identifier: Apache-2.0
"""FT528: measured runs succeeded."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class FailedRun(StatementRule):
    """Runs that failed."""

    id = "FT528"
    slug = "failed-run"
    title = "measured runs succeeded"
    level = Level.NOTE
    refuses = (
        "A brought trusted statement of the merged bytes in which a test, an iteration, a gate or "
        "an audited kernel failed."
    )
    why = (
        "It covers nothing, and it may be right. Where another run of the same bytes passed, "
        "FT512 asks a person."
    )
    blind = "Failures that were not signed."
    fix = "mend the code, commit, plan and measure again"
    want = "runs without a failure"
