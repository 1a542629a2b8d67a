# SPDX-License-Identifier: Apache-2.0
"""Lets pytest collect the tests that manifests name, at the target's tip and in the judged tree."""

from collections.abc import Callable, Iterator, Mapping

from fasttrack.case import Case
from fasttrack.config import judged_or_head
from fasttrack.executed.named_tests import NamedTests, run_pytest
from fasttrack.executed.reports import TestsReport
from fasttrack.ran import Collection, Unknown


def collect_tests(case: Case, timeout_s: float, tell: Callable[[str], None]) -> Collection:
    """What both trees collect.

    Args:
        case: the change.
        timeout_s: seconds that one collection may take.
        tell: is told what begins.

    Raises:
        FactUnavailable: a tree can not be written to disk.
        InputError: something that was started can not be killed.
    """
    named = NamedTests(case)
    reports: list[TestsReport | str] = []
    for word, tree in (("base", case.change.base), ("head", judged_or_head(case.change))):
        arguments = named.arguments(tree)
        tell(f"test collection: {word}")
        reports.append(
            run_pytest(case, tree, {}, arguments, collect_only=True, timeout_s=timeout_s)
            if arguments
            else _NOTHING
        )
    before, after = reports
    if isinstance(before, str):
        return Collection(unknown=(Unknown("", f"at the target's tip: {before}"),))
    if isinstance(after, str):
        return Collection(unknown=(Unknown("", f"after the change: {after}"),))
    unknown = tuple(_not_collected(case, before, after))
    hidden = {problem.path for problem in unknown} | {_file(error) for error in after.errors}
    return Collection(_named(named, before, hidden), _named(named, after, hidden), unknown)


_NOTHING = TestsReport(nonce="", collected={}, outcomes={}, messages={}, errors=(), exit_code=0)


def _named(
    named: NamedTests, report: TestsReport, hidden: set[str]
) -> Mapping[str, tuple[str, ...]]:
    """The collected tests of named files, without files that one side could not collect."""
    return {
        id_: marks
        for id_, marks in report.collected.items()
        if named.names(path := id_.partition("::")[0]) and path not in hidden
    }


def _not_collected(case: Case, before: TestsReport, after: TestsReport) -> Iterator[Unknown]:
    """Files that can not be collected, but for those that the change has nothing to do with."""
    for error in after.errors:
        if error not in before.errors or case.change.entry(_file(error)) is not None:
            yield Unknown(_file(error), f"not collected: {error}")


def _file(error: str) -> str:
    return error.partition(": ")[0].partition("::")[0]
