# SPDX-License-Identifier: Apache-2.0
"""FT406: no tolerance is looser than before."""

from fasttrack.rules.validation.weakening_rule import WeakeningRule
from fasttrack.testmodel.weakening import Kind


class LooserTolerance(WeakeningRule):
    """Tolerances that let more through."""

    id = "FT406"
    slug = "looser-tolerance"
    title = "no tolerance is looser than before"
    refuses = (
        "A tolerance or bound of an assertion that lets more through than at the target branch, "
        "told as old value -> new value: given as literal, constant, default, entry of a table, "
        "parameter, fixture, or default of an environment variable, through helpers, partial "
        "functions, decorators and context managers. A comparison that was exact and is not any "
        "more counts too; a tolerance of sets of parameters that are new does not."
    )
    why = "Every wrong kernel passes once the tolerance is wide enough."
    blind = (
        "Tolerances that depend on values that are only known when the test runs, and torch's "
        "choice by operand type between its smallest and largest default."
    )
    fix = "keep the tolerance, or send the new one with its derivation as a change of its own"
    kind = Kind.TOLERANCE
