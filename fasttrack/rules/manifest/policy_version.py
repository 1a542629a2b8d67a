# SPDX-License-Identifier: Apache-2.0
"""FT317: a new policy parses and has a higher version."""

from collections.abc import Iterator
from dataclasses import replace

from fasttrack.case import Case
from fasttrack.config import POLICY_NAME, judged_or_head
from fasttrack.errors import InputError
from fasttrack.finding import Finding, Level
from fasttrack.policy.load import load_policy
from fasttrack.rules.base import Rule
from fasttrack.rules.manifest.edited import MAX_FINDINGS
from fasttrack.rules.manifest.manifest_schema import line_in


class PolicyVersion(Rule):
    """Policies that can not be read, go missing, or do not count up."""

    id = "FT317"
    slug = "policy-version"
    title = "an edited policy parses and counts up"
    level = Level.BLOCK
    refuses = (
        "A change after which the policy is gone, is no regular file or does not parse, or has a "
        "lower version. An edited policy with the same version is for an ordinary review."
    )
    why = (
        "Every check after the merge would fail, or answer under a policy that reports can not "
        "tell from an older one."
    )
    blind = "What the new policy lets through; `fasttrack policy test` shows that."
    fix = "mend the lines named, and set `version` to the next number"
    waivable = False

    def check(self, case: Case) -> Iterator[Finding]:
        """Reads the policy as it would be after the merge."""
        path = f"{case.config.folder}/{POLICY_NAME}"
        before = case.change.base.get(path)
        after = judged_or_head(case.change).get(path)
        if case.change.entry(path) is None or before == after:
            return
        if after is None or not after.mode.startswith("100"):
            saw = "no policy after the merge" if after is None else "a policy that is no file"
            yield self.finding(path=path, saw=saw, want="a policy")
            return
        try:
            policy = load_policy(case.change.blob(after), path)
        except InputError as error:
            for problem in error.problems[:MAX_FINDINGS]:
                line = line_in(path, problem.where)
                yield self.finding(path=path, line=line, saw=problem.saw, want=problem.want)
            return
        if before is not None:
            yield from self._counted(path, case.policy.version, policy.version)

    def _counted(self, path: str, old: int, new: int) -> Iterator[Finding]:
        found = self.finding(
            path=path, saw=f"version {new} after {old}", want=f"version {old + 1} or higher"
        )
        if new < old:
            yield found
        elif new == old:
            yield replace(found, level=Level.ROUTE)
