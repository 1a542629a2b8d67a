# SPDX-License-Identifier: Apache-2.0
"""FT101: every changed path is inside a root, wired, or part of the lane's own record."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.finding import Finding, Level
from fasttrack.policy.model import PathClass
from fasttrack.rules.base import EntryRule
from fasttrack.rules.confinement.wired import allowance

OWN_RECORD = frozenset({PathClass.MANIFESTS, PathClass.DOCS, PathClass.POLICY})
"""Classes that need no root: manifests (FT3xx judges them), policy (FT119), documentation."""


class OutsideScope(EntryRule):
    """Changed paths that no manifest governs and no wiring allows."""

    id = "FT101"
    slug = "outside-scope"
    title = "every changed path is inside the scope"
    level = Level.ROUTE
    refuses = (
        "A changed path that lies outside every manifest's roots, is not a wired file, and is "
        "neither a manifest, policy, documentation nor a new test file. Existing tests and the "
        "reference are outside: whoever edits what judges a kernel needs a reader."
    )
    why = (
        "Evidence speaks about the governed units only. A line outside them can change what every "
        "other path of the engine does, and nothing in the scope would show it."
    )
    blind = "What code inside the roots does to code outside them at run time; FT2xx looks at that."
    fix = "move the edit into the roots, or send it as a change of its own for ordinary review"
    false_alarms = "not measured yet"

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Reports one path outside roots and wiring."""
        path_class = case.path_class(entry.path)
        if path_class in OWN_RECORD or case.governing(entry.path) is not None:
            return
        if path_class is PathClass.TESTS and entry.added:
            return
        if allowance(case, entry.path) is not None:
            return
        yield self.finding(
            path=entry.path,
            saw=f"a change to a `{path_class.value}` path outside every root",
            want="paths inside the manifest's roots or its wiring",
            content=entry.new.oid or entry.old.oid,
        )
