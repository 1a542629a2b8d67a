# SPDX-License-Identifier: Apache-2.0
"""FT119: the policy, its keys and the code owners stay as they are."""

from fasttrack.case import Case
from fasttrack.finding import Level
from fasttrack.policy.model import PathClass
from fasttrack.rules.confinement.listed_paths import ListedPaths, Listing


class PolicyChange(ListedPaths):
    """Changes to what judges changes."""

    id = "FT119"
    slug = "policy-change"
    title = "policy, keys and code owners stay as they are"
    level = Level.ROUTE
    refuses = "A change to the policy, to a trusted key or to CODEOWNERS, of whatever size."
    why = "It decides who is trusted and what every later change owes; people decide that."
    blind = "What the new policy would let through; `fasttrack policy test` shows it."
    fix = "send it alone, with the approvals that `approvals.policy_changes` asks for"
    waivable = False
    listing = Listing()
    noun = "a file of policy, keys or code owners"

    def concerns(self, case: Case, path: str) -> bool:
        """The class `policy`, which no pattern of the policy can change."""
        return case.path_class(path) is PathClass.POLICY
