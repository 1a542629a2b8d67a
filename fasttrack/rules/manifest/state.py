# SPDX-License-Identifier: Apache-2.0
"""FT315: code of a path that is switched off stays as it is."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.finding import Finding, Level
from fasttrack.manifest.words import Status
from fasttrack.rules.base import Rule
from fasttrack.rules.manifest.edited import line_of
from fasttrack.rules.manifest.roots_touched import roots_touched


class State(Rule):
    """Changes to the roots of a suspended or revoked path."""

    id = "FT315"
    slug = "state"
    title = "the path whose code changes is active"
    level = Level.ROUTE
    refuses = (
        "A change that adds or modifies files in the roots of a path whose state, after the "
        "merge, is `suspended` or `revoked`. Deleting them is free."
    )
    why = (
        "Something went wrong with it. A repair needs a reader who knows what, and nothing of it "
        "runs before somebody switches it on again."
    )
    blind = "Revocations in the signed file that operators mount; those reach deployments alone."
    fix = "repair the path in an ordinary review that also decides about its state"
    waivable = False

    def check(self, case: Case) -> Iterator[Finding]:
        """Looks at every path whose files are added or modified."""
        for path, manifest, touched in roots_touched(case):
            state = manifest.state
            if state.status is not Status.ACTIVE:
                yield self.finding(
                    path=path,
                    line=line_of(case, path, ("state",)),
                    saw=f"a path that is {state.status.value}, while `{touched}` changes",
                    want="an active path",
                )
