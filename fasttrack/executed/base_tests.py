# SPDX-License-Identifier: Apache-2.0
"""Runs the target branch's tests over the change's code: what they say is not the change's word."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from fasttrack.case import Case
from fasttrack.config import judged_or_head
from fasttrack.executed.contract import contract_changes, renamed_twins
from fasttrack.executed.named_tests import NamedTests, of_base, run_pytest
from fasttrack.executed.reports import TestsReport
from fasttrack.ran import BaseTests, Failure, Unknown


def run_base_tests(case: Case, timeout_s: float, tell: Callable[[str], None]) -> BaseTests:
    """Runs them; what fails is run once more over the target branch's own code.

    Args:
        case: the change.
        timeout_s: seconds that each of both runs may take.
        tell: is told what begins.

    Raises:
        FactUnavailable: a tree can not be written to disk.
        InputError: something that was started can not be killed.
    """
    named, base, head = NamedTests(case), case.change.base, judged_or_head(case.change)
    arguments = named.arguments(base)
    if not arguments:
        return BaseTests()
    tell("base tests: which there are, then the same over the change's code")
    there_are = run_pytest(case, base, {}, arguments, collect_only=True, timeout_s=timeout_s)
    if isinstance(there_are, str):
        return BaseTests(unknown=(Unknown("", f"at the target's tip: {there_are}"),))
    other = of_base(case, named, head)
    over_head = run_pytest(case, head, other, arguments, collect_only=False, timeout_s=timeout_s)
    if isinstance(over_head, str):
        return BaseTests(unknown=(Unknown("", over_head),))
    messages = dict(_not_passed(named, over_head))
    messages |= _not_run(named, there_are, over_head, messages)
    passed = sum(1 for outcome in over_head.outcomes.values() if outcome == "passed")
    if not messages:
        return BaseTests(passed=passed)
    files = dict.fromkeys(_file(id_) for id_ in messages)
    tell(f"{len(messages)} base tests did not pass: the same over the target branch's code")
    over_base = run_pytest(case, base, {}, files, collect_only=False, timeout_s=timeout_s)
    if isinstance(over_base, str):
        return BaseTests(unknown=(Unknown("", f"at the target's tip: {over_base}"),), passed=passed)
    broken = {id_: why for id_, why in messages.items() if _passes(over_base, id_)}
    renamed = _renamed(case, over_base, broken)
    return BaseTests(
        tuple(_failures(case, {i: why for i, why in broken.items() if i not in renamed})),
        tuple(sorted(renamed)),
        passed=passed,
    )


def _not_passed(named: NamedTests, report: TestsReport) -> Iterator[tuple[str, str]]:
    """Id, or file that can not be collected, to what happened."""
    for id_, outcome in report.outcomes.items():
        if outcome != "passed" and named.names(_file(id_)):
            why = report.messages.get(id_, "")
            yield id_, "is skipped" if outcome == "skipped" else f"fails: {why}"
    for error in report.errors:
        path, _, why = error.partition(": ")
        if named.names(_file(path)):
            yield _file(path), f"can not be collected: {why}"


def _not_run(
    named: NamedTests, there_are: TestsReport, over_head: TestsReport, known: Mapping[str, str]
) -> Mapping[str, str]:
    """Tests of the target's tip of which nothing is heard over the change's code."""
    return {
        id_: "was not run"
        for id_ in there_are.collected
        if id_ not in over_head.outcomes and named.names(_file(id_)) and _file(id_) not in known
    }


def _passes(report: TestsReport, id_: str) -> bool:
    """Whether a test passes; of a file, whether any of its tests does."""
    if "::" in id_:
        return report.outcomes.get(id_) == "passed"
    return any(o == "passed" for i, o in report.outcomes.items() if _file(i) == id_)


def _renamed(case: Case, report: TestsReport, broken: Iterable[str]) -> set[str]:
    """Those that the change has under another name."""
    found: set[str] = set()
    for path in dict.fromkeys(map(_file, broken)):
        ids = [i for i in report.outcomes if _file(i) == path]
        twins = renamed_twins(case, path, {i: _function(i) for i in ids})
        found |= {id_ for id_ in broken if twins.get(id_)}
        if path in set(broken) and ids and all(twins.values()):
            found.add(path)
    return found


def _failures(case: Case, broken: Mapping[str, str]) -> Iterator[Failure]:
    contracts = {path: contract_changes(case, path) for path in set(map(_file, broken))}
    for id_, why in sorted(broken.items()):
        yield Failure(id_, _file(id_), why, contracts[_file(id_)])


def _file(id_: str) -> str:
    return id_.partition("::")[0]


def _function(id_: str) -> str:
    return id_.partition("[")[0].rpartition("::")[2]
