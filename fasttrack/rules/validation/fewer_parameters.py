# SPDX-License-Identifier: Apache-2.0
"""FT403: tests run with as many parameters as before."""

from fasttrack.rules.validation.weakening_rule import WeakeningRule
from fasttrack.testmodel.weakening import Kind


class FewerParameters(WeakeningRule):
    """Parameters that are gone."""

    id = "FT403"
    slug = "fewer-parameters"
    title = "tests run with as many parameters as before"
    refuses = (
        "Sets of parameters that a test had at the target branch and has not any more, with fewer "
        "left: from lists, ranges, products, comprehensions, constants, fixtures, "
        "`pytest_generate_tests`, marks on functions, classes and modules. Sets are compared by "
        "what they hold, over all tests that stand for the old one, so that a split or another "
        "order is no loss."
    )
    why = "The shape that is left out is the one that the kernel gets wrong."
    blind = (
        "Sets whose values are objects with equal words; values that were exchanged for others of "
        "the same number, unless a manifest names the test."
    )
    fix = "keep the parameters, or send their removal as a change of its own"
    kind = Kind.PARAMETERS
