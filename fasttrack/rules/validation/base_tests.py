# SPDX-License-Identifier: Apache-2.0
"""FT415: the target branch's tests pass over the change's code."""

from collections.abc import Iterator
from dataclasses import replace

from fasttrack.case import Case
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import Rule

NAMES = 3
"""Ids that a finding tells."""


class BaseTests(Rule):
    """Tests of the target branch that fail over the change's code."""

    id = "FT415"
    slug = "base-tests"
    title = "the target branch's tests pass over the change's code"
    level = Level.ROUTE
    refuses = (
        "With `--run-base-tests`: a test that a manifest names, as it is at the target branch's "
        "tip, which fails, is skipped or can not be collected over the change's code and passes "
        "over the target branch's. A test that the change has under another name, body for body, "
        "is left out and noted."
    )
    why = (
        "A change brings its own tests along. Those of the target branch are the ones that it did "
        "not choose."
    )
    blind = (
        "What no test checks. Tests that fail over the target branch's code too, that need a GPU "
        "or the network, or that code of the change recognises and treats in its own way: it runs "
        "in the same process as they do."
    )
    fix = "mend the code, or let a person judge why the old expectation no longer holds"

    def check(self, case: Case) -> Iterator[Finding]:
        """Reports what did not pass, by file; what was left out, in one note."""
        tests = case.executed.base_tests
        if tests is None:
            return
        for unknown in tests.unknown:
            yield self.could_not_tell(FactUnavailable(unknown.reason), unknown.path)
        failures = [failure for failure in tests.failures if not failure.contract]
        for path in dict.fromkeys(failure.path for failure in failures):
            of_file = [failure for failure in failures if failure.path == path]
            first = of_file[0]
            yield self.finding(
                path=path,
                saw=f"{len(of_file)} base tests do not pass: `{first.id}` {first.message}",
                want="every named test of the target branch passes over the change's code",
                content="\n".join(failure.id for failure in of_file),
            )
        if tests.renamed:
            names = ", ".join(f"`{id_}`" for id_ in tests.renamed[:NAMES])
            more = len(tests.renamed) - NAMES
            found = self.finding(
                saw=f"renamed and left out: {names}" + (f" and {more} more" if more > 0 else ""),
                want="tests under the names that they had",
                content="\n".join(tests.renamed),
            )
            yield replace(found, level=Level.NOTE)
