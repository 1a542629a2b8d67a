# SPDX-License-Identifier: Apache-2.0
"""What a change takes from the tests: the one answer that all rules of the family read.

1  which test files the change edits, or can weaken: `reach`, `dependants`
2  the tests of those files at the target branch and after the merge             `sides`
3  each test with what stands for it after the merge                             `partners`
4  what it says less: assertions, tolerances, parameters, skips, seeds, loops    `differences`
"""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.imports import uncollected
from fasttrack.errors import FactUnavailable
from fasttrack.testmodel.dependants import COMPARED_FILES, Dependants
from fasttrack.testmodel.differences import Differences
from fasttrack.testmodel.partners import Partners
from fasttrack.testmodel.reach import Reach
from fasttrack.testmodel.sides import Side
from fasttrack.testmodel.weakening import Weakening, gathered


def weakenings(case: Case) -> tuple[Weakening, ...]:
    """All that a change takes from the tests; use it as `case.once(weakenings)`."""
    reach = Reach(case)
    if not reach.edited and not reach.settings_edited and not reach.imported_first:
        return ()
    try:
        with uncollected():
            return gathered(_found(reach))
    except FactUnavailable as reason:
        return (Weakening.untold("", f"could not tell: {reason}"),)


def _found(reach: Reach) -> Iterator[Weakening]:
    base, head = Side(reach, reach.base), Side(reach, reach.head)
    try:
        yield from _between(reach, base, head)
    finally:
        for side in (base, head):
            side.close()
        reach.close()


def _between(reach: Reach, base: Side, head: Side) -> Iterator[Weakening]:
    edited = sorted(reach.edited, key=lambda path: not reach.is_named(path))
    users = Dependants(reach)
    unedited = list(users.tests)
    everywhere = base.settings_differ(head)
    if everywhere:
        yield from base.settings_differences(head)
        unedited += [path for path in base.named_tests() if path not in unedited]
    reach.bounds.left_out += sum(map(reach.is_named, unedited[COMPARED_FILES:]))
    paths = [*edited, *unedited[:COMPARED_FILES]]
    partners = Partners(users, base, head, paths, everywhere=everywhere)
    yield from Differences(reach, base, head, partners).all()
    if base.files.spent or head.files.spent or reach.bounds.spent:
        rest = paths[paths.index(partners.last) :] if partners.last else paths
        reach.bounds.left_out += sum(path in reach.edited or reach.is_named(path) for path in rest)
    if reach.bounds.left_out:
        yield Weakening.untold(partners.last, "it concerns more tests than are compared")
