# SPDX-License-Identifier: Apache-2.0
"""FT404: tests assert as much as before."""

from fasttrack.rules.validation.weakening_rule import WeakeningRule
from fasttrack.testmodel.weakening import Kind


class AssertionsRemoved(WeakeningRule):
    """Assertions that are gone or weaker."""

    id = "FT404"
    slug = "assertions-removed"
    title = "tests assert as much as before"
    refuses = (
        "An assertion of the target branch that has no counterpart, or a weaker one: content "
        "became a shape, a relation or a truth value, an expected value became the tested one "
        "again or is read from a file that the change adds. Assertions in helpers are found "
        "through calls, whatever they are called by. What looks at less of a result than before "
        "goes to review: a part, its mean or smallest value, no order, fewer digits; and so does "
        "a test none of whose assertions speaks of the code under test any more."
    )
    why = (
        "A test without its assertion still runs, still counts, and shows only that nothing "
        "crashed."
    )
    blind = (
        "Assertions in code outside the tests; what is cut off a result by functions whose text "
        "is not followed, by unpacking, in place, by a loop over known positions, or beyond the "
        "first 240 characters of an expression; and an equality that the result brings along."
    )
    fix = "keep the assertion, or send its removal as a change of its own"
    kind = Kind.ASSERTION
