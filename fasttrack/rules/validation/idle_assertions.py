# SPDX-License-Identifier: Apache-2.0
"""FT405: every assertion can fail its test."""

from fasttrack.rules.validation.weakening_rule import WeakeningRule
from fasttrack.testmodel.weakening import Kind


class IdleAssertions(WeakeningRule):
    """Assertions that cannot fail any more."""

    id = "FT405"
    slug = "idle-assertions"
    title = "every assertion can fail its test"
    refuses = (
        "An assertion that could fail and no longer can: it always holds (`or True`, a tuple, a "
        "thing compared with itself or with `mock.ANY`), it is never reached (a loop over nothing, "
        "a generator or coroutine that is called and dropped), its failure is caught (`try`, "
        "`suppress`) or lost in a thread, or it is made only under a condition that the text does "
        "not tell."
    )
    why = "It reads like a check and is none."
    blind = (
        "Conditions that a machine decides, comparisons that hold for reasons of mathematics, and "
        "generators or coroutines that are kept in a name and never run."
    )
    fix = "assert where the test always comes by, and let the failure through"
    kind = Kind.TRIVIAL
