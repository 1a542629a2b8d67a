# SPDX-License-Identifier: Apache-2.0
"""FT529: the gate refuses what is past its bounds."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class Admitted(StatementRule):
    """Gates that did not refuse."""

    id = "FT529"
    slug = "admitted"
    title = "the gate refuses what is past its bounds"
    level = Level.NOTE
    refuses = (
        "A brought trusted statement in which the gate admitted a point past a bound, or refused "
        "it without a reason."
    )
    why = "It covers nothing: the code lets through more than the manifest says."
    blind = "Whether a server asks the gate."
    fix = "make the gate refuse it, or the scope admit it, and measure again"
    want = "a refusal with its reasons"
