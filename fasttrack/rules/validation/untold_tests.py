# SPDX-License-Identifier: Apache-2.0
"""FT413: what tests do can be read from their text."""

from fasttrack.rules.validation.weakening_rule import WeakeningRule
from fasttrack.testmodel.weakening import Kind


class UntoldTests(WeakeningRule):
    """Tests that cannot be read any more."""

    id = "FT413"
    slug = "untold-tests"
    title = "what tests do can be read from their text"
    refuses = (
        "Parameters, tolerances, counts or whole test files that could be read at the target "
        "branch and no longer can: values that a program computes, sources that do not parse, "
        "helpers on which more files depend than are compared."
    )
    why = "What cannot be read cannot be shown to be as strong as before."
    blind = (
        "Whether the new form is weaker: a reader must tell. A test that many unedited classes "
        "inherit is compared in two of them, and of unedited files that import an edited helper "
        "and that no manifest names, 120."
    )
    fix = "write the values where they can be read, or send the edit for ordinary review"
    kind = Kind.UNTOLD
