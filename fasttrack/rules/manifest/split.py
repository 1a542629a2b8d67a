# SPDX-License-Identifier: Apache-2.0
"""FT318: where the policy asks for two changes, a manifest arrives before its code."""

from collections.abc import Iterator

from fasttrack.case import Case, in_roots
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import Rule
from fasttrack.rules.manifest.edited import edited, first_of


class Split(Rule):
    """A new manifest that comes together with its code."""

    id = "FT318"
    slug = "split"
    title = "a manifest and its code arrive in two changes"
    level = Level.ROUTE
    refuses = (
        "Under `new_paths: split`, a change that adds a manifest and also touches files in its "
        "roots. Under `together` the rule reports nothing."
    )
    why = "The terms are agreed before there is code that somebody wants to get in."
    blind = "Code that was put under the future roots before, in an ordinary review."
    fix = "send the manifest first, and the code when it is merged"

    def check(self, case: Case) -> Iterator[Finding]:
        """Looks for files in the roots of new manifests."""
        if case.policy.new_paths != "split":
            return
        for subject in edited(case):
            inside = [e.path for e in case.entries if in_roots(subject.head, e.path)]
            if subject.base is None and inside:
                yield self.finding(
                    path=subject.path,
                    saw=f"a new manifest together with {first_of(inside)} in its roots",
                    want="the manifest alone",
                    content="\n".join(inside),
                )
