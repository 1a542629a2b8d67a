# SPDX-License-Identifier: Apache-2.0
"""FT401: every test of the target branch is still there."""

from fasttrack.rules.validation.weakening_rule import WeakeningRule
from fasttrack.testmodel.weakening import Kind


class TestsLost(WeakeningRule):
    """Tests that are gone."""

    __test__ = False

    id = "FT401"
    slug = "tests-lost"
    title = "every test of the target branch is still there"
    refuses = (
        "Tests that the target branch collects and that are not collected any more, in a changed "
        "test file or one that depends on it: deleted, renamed to a name that is no test, in a "
        "class that is given an `__init__`, itself or its class given `__test__ = False`, left out "
        "by other name patterns. A test of another name or file, or several, with the same body "
        "or most of its words stand for it. It blocks where a manifest names the test, its code is "
        "still there, and its file was not taken into another that speaks of the same code."
    )
    why = "Who no longer runs a test learns nothing when the code that it tested breaks."
    blind = (
        "Tests that a program makes up, unless following its text makes them too; a test that is "
        "rewritten so much that fewer than six tenths of its words are left is told as lost."
    )
    fix = "bring the test back, or send its removal as a change of its own for ordinary review"
    kind = Kind.LOST
