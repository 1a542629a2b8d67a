# SPDX-License-Identifier: Apache-2.0
"""FT319: code that a manifest governs stays governed, or goes."""

from collections.abc import Iterator

from fasttrack.case import Case, in_roots
from fasttrack.config import judged_or_head
from fasttrack.finding import Finding, Level
from fasttrack.manifest.model import Manifest
from fasttrack.rules.base import Rule
from fasttrack.rules.manifest.edited import first_of


class UngovernedCode(Rule):
    """Root files that no manifest governs any more."""

    id = "FT319"
    slug = "ungoverned-code"
    title = "governed code stays governed"
    level = Level.ROUTE
    refuses = (
        "A change that deletes a manifest, or takes a root out of it, while files that it governed "
        "stay and no other manifest governs them."
    )
    why = (
        "Such code goes on running without scope, lease and owner, and the fast track is silent "
        "about whatever happens to it next."
    )
    blind = "Whether something still imports the code."
    fix = "delete the files with the manifest, or let the maintainers take the code over"
    waivable = False

    def check(self, case: Case) -> Iterator[Finding]:
        """Compares what was governed with what is, for every manifest that the change touches."""
        for path, before in case.base.valid.items():
            after = case.head.valid.get(path)
            unread = path in case.head.broken
            if case.change.entry(path) is None or unread or _same_roots(before, after):
                continue
            left = [
                p
                for p in judged_or_head(case.change)
                if in_roots(before, p) and case.head.governing(p) is None
            ]
            if left:
                yield self.finding(
                    path=path,
                    saw=f"{first_of(left)}, which no manifest governs any more",
                    want="no code left behind",
                    content="\n".join(left),
                )


def _same_roots(before: Manifest, after: Manifest | None) -> bool:
    return after is not None and set(before.code.roots) <= set(after.code.roots)
