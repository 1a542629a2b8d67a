# SPDX-License-Identifier: Apache-2.0
"""FT508: no time is faster than its bytes can move."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class ImpossibleTime(StatementRule):
    """Times below the roofline's floor."""

    id = "FT508"
    slug = "impossible-time"
    title = "no time is faster than its bytes can move"
    level = Level.BLOCK
    refuses = (
        "A trusted performance statement whose time, on either side, is below what its own bytes "
        "take at the data sheet's bandwidth of the machine."
    )
    why = "It is faster than the hardware. What was timed is not the work, or the clock was wrong."
    blind = (
        "Statements of whole-model metrics, which name no bytes; bytes that are named too low; "
        "hardware without a bandwidth in the policy."
    )
    fix = "time the work itself, outside of caches and captured results, and sign again"
    want = "a time that the memory's bandwidth allows"
