# SPDX-License-Identifier: Apache-2.0
"""FT416: pytest collects after the change what it collected before."""

from collections.abc import Iterator, Mapping, Sequence

from fasttrack.case import Case
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import Rule

NAMES = 3
"""Ids that a finding tells."""


class TestCollection(Rule):
    """Tests that are not collected any more, or are marked to be skipped."""

    __test__ = False

    id = "FT416"
    slug = "test-collection"
    title = "pytest collects every named test of the target branch"
    level = Level.ROUTE
    refuses = (
        "With `--run-probe`: a test that a manifest names, that pytest collects at the target "
        "branch's tip and not in the judged tree, or that carries `skip`, `skipif` or `xfail` "
        "there and did not before. A test that has another name or lies in another file with the "
        "same parameters is the same test, also when it was split in several."
    )
    why = "A test that is not run finds nothing, and a report without failures does not show it."
    blind = (
        "What a test checks. What code decides when tests run, such as `pytest.skip()` in a body "
        "or a fixture. Tests that are collected only elsewhere, with a GPU or other packages. What "
        "code of the tests makes of the report: it is collected in the same process."
    )
    fix = "collect the tests again, or let a person judge why they are not needed"

    def check(self, case: Case) -> Iterator[Finding]:
        """Reports by file what is lost and what is newly marked."""
        found = case.executed.test_collection
        if found is None:
            return
        for unknown in found.unknown:
            yield self.could_not_tell(FactUnavailable(unknown.reason), unknown.path)
        for path, ids in _by_file(found.lost).items():
            yield self._about(path, ids, "not collected any more")
        marked = found.marked
        for path, ids in _by_file(tuple(marked)).items():
            words = sorted({mark for id_ in ids for mark in marked[id_]})
            yield self._about(path, ids, f"newly marked {', '.join(f'`{w}`' for w in words)}")

    def _about(self, path: str, ids: Sequence[str], what: str) -> Finding:
        names = ", ".join(f"`{id_.partition('::')[2]}`" for id_ in ids[:NAMES])
        more = f" and {len(ids) - NAMES} more" if len(ids) > NAMES else ""
        return self.finding(
            path=path,
            saw=f"{len(ids)} tests are {what}: {names}{more}",
            want="the tests that the target branch collects",
            content="\n".join(ids),
        )


def _by_file(ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = {}
    for id_ in ids:
        found.setdefault(id_.partition("::")[0], []).append(id_)
    return found
