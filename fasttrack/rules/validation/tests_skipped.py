# SPDX-License-Identifier: Apache-2.0
"""FT402: no test is newly skipped."""

from fasttrack.rules.validation.weakening_rule import WeakeningRule
from fasttrack.testmodel.weakening import Kind


class TestsSkipped(WeakeningRule):
    """Tests that do not run any more."""

    __test__ = False

    id = "FT402"
    slug = "tests-skipped"
    title = "no test is newly skipped"
    refuses = (
        "Marks, calls of `pytest.skip` and its kin, fixtures that skip, sets of parameters with "
        "such marks, options of ini files (`-k`, `-m`, `--ignore`, `--deselect`), "
        "`collect_ignore` and hooks in `conftest.py` that keep a test from running or from "
        "failing and did not before; marks and options that repeat it until it passes, settings "
        "of hypothesis that generate nothing, and hooks that assign to modules or to tests. It "
        "blocks where a manifest names the test and nothing else "
        "is needed for the skip; a new condition is for a reader, and passes where it says of all "
        "earlier sets of parameters that they run."
    )
    why = "A skipped test counts as passed in every summary that people look at."
    blind = "Whether a condition holds on the machine that runs the tests, and what plug-ins do."
    fix = "let the test run, or send the skip with its reason as a change of its own"
    kind = Kind.SKIPPED
