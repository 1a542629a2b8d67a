# SPDX-License-Identifier: Apache-2.0
"""FT120: a change of policy or keys holds nothing else."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.config import POLICY_NAME
from fasttrack.finding import Finding, Level
from fasttrack.policy.classes import CODEOWNERS, fold
from fasttrack.policy.model import PathClass
from fasttrack.rules.base import Rule

_OWNERS = frozenset(fold(path) for path in CODEOWNERS)


class PolicyMixed(Rule):
    """Policy or keys that come together with other files."""

    id = "FT120"
    slug = "policy-mixed"
    title = "policy and keys change alone"
    level = Level.BLOCK
    refuses = (
        "A change of the policy file or a trusted key together with any path that is neither of "
        "them nor CODEOWNERS, evidence included. Code owners that change together with other "
        "files are FT119's."
    )
    why = (
        "Weaker rules and what needs them arrive as one: whoever approves the code approves the "
        "policy with it, and a key comes with the evidence that it signs."
    )
    blind = (
        "A policy change that prepares a later one; its two approvals are the guard. The first "
        "policy of a repository may come with its manifest: there is no older one to talk past."
    )
    fix = "move the policy change to a branch of its own and merge it first"
    waivable = False

    def check(self, case: Case) -> Iterator[Finding]:
        """Looks for both kinds of paths."""
        policy = [e.path for e in case.change.entries if _is_policy_or_key(case, e.path)]
        other = [
            e.path for e in case.change.entries if case.path_class(e.path) is not PathClass.POLICY
        ]
        first = f"{case.config.folder}/{POLICY_NAME}" not in case.change.base
        if policy and other and not first:
            yield self.finding(
                path=policy[0],
                saw=f"a policy change together with {len(other)} other paths, first `{other[0]}`",
                want="a change of policy and keys alone",
                content="\n".join((*policy, *other)),
            )


def _is_policy_or_key(case: Case, path: str) -> bool:
    return case.path_class(path) is PathClass.POLICY and fold(path) not in _OWNERS
