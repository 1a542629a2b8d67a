# SPDX-License-Identifier: Apache-2.0
"""FT408: tests repeat as often as before."""

from fasttrack.rules.validation.weakening_rule import WeakeningRule
from fasttrack.testmodel.weakening import Kind


class FewerIterations(WeakeningRule):
    """Repetitions that are cut."""

    id = "FT408"
    slug = "fewer-iterations"
    title = "tests repeat as often as before"
    refuses = (
        "A loop around an assertion, a loop that repeats calls, or the number of generated "
        "examples of a property-based test, that runs less often than at the target branch; and a "
        "strategy that draws from fewer values, where they can be counted."
    )
    why = "Races and rare inputs show in the iterations that were cut."
    blind = (
        "Loops whose count the text does not tell, and how far numbers that are no integers reach."
    )
    fix = "keep the count, or send the cut with its reason as a change of its own"
    kind = Kind.ITERATIONS
