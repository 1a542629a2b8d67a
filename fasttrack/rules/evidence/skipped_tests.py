# SPDX-License-Identifier: Apache-2.0
"""FT527: no test was skipped."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class SkippedTests(StatementRule):
    """Runs with tests that did not run."""

    id = "FT527"
    slug = "skipped-tests"
    title = "no test was skipped"
    level = Level.NOTE
    refuses = (
        "A brought trusted statement in which a test was skipped, expected to fail or deselected, "
        "or none passed."
    )
    why = "It covers nothing: skipped is missing."
    blind = "Tests that pass without testing anything."
    fix = "make the tests run on the cell's machine, and measure again"
    want = "tests that all ran and passed"
