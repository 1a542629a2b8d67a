# SPDX-License-Identifier: Apache-2.0
"""FT414: the target branch's tests can still call the code in the roots."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import Rule


class ContractChanged(Rule):
    """Base tests that can not speak, because what they call takes other parameters."""

    id = "FT414"
    slug = "contract-changed"
    title = "the target branch's tests can call the change's code"
    level = Level.ROUTE
    refuses = (
        "With `--run-base-tests`: tests of the target branch that pass over its own code and not "
        "over the change's, and that import a function, class or module of the roots which is gone "
        "or takes other parameters now."
    )
    why = (
        "Where a contract changes, the tests that knew the old one say nothing about the new code; "
        "only the change's own tests do, and they came with it."
    )
    blind = (
        "Contracts that are not in a signature: shapes, formats, units, order of calls. Names that "
        "are re-exported elsewhere."
    )
    fix = "keep the old signature beside the new one, or let a person read the tests that moved"

    def check(self, case: Case) -> Iterator[Finding]:
        """One finding for each test file whose contract changed."""
        tests = case.executed.base_tests
        failures = [f for f in tests.failures if f.contract] if tests else []
        for path in dict.fromkeys(failure.path for failure in failures):
            of_file = [failure for failure in failures if failure.path == path]
            more = f" and {len(of_file[0].contract) - 1} more" if of_file[0].contract[1:] else ""
            yield self.finding(
                path=path,
                saw=f"{len(of_file)} base tests can not speak: {of_file[0].contract[0]}{more}",
                want="signatures that the target branch's tests can call",
                content="\n".join(f"{f.id} {f.contract}" for f in of_file),
            )
