# SPDX-License-Identifier: Apache-2.0
"""FT324: the policy is read from the same folder before and after."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Tree
from fasttrack.config import POLICY_NAME, find_folder, judged_or_head
from fasttrack.errors import InputError
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import Rule


class ConfigFolder(Rule):
    """Changes that move the place where policy and manifests are looked for."""

    id = "FT324"
    slug = "config-folder"
    title = "policy and manifests are read from the same folder"
    level = Level.ROUTE
    refuses = (
        "A change after which the search finds the policy in another folder: through `[tool."
        "fasttrack] dir` in pyproject.toml, or a policy in a folder that is searched earlier."
    )
    why = (
        "The next check would read another policy and other manifests, without any line of the "
        "present ones having changed."
    )
    blind = "Folders that are named by option."
    fix = "leave the folder, or move policy and manifests in a change of their own"
    false_alarms = "not measured yet"
    waivable = False

    def check(self, case: Case) -> Iterator[Finding]:
        """Searches both trees."""
        if not any(
            e.path == "pyproject.toml" or e.path.endswith(f"/{POLICY_NAME}") for e in case.entries
        ):
            return
        before = _folder(case, case.change.base)
        after = _folder(case, judged_or_head(case.change))
        if before != after:
            yield self.finding(
                saw=f"the policy is looked for {after} instead of {before}",
                want=before,
            )


def _folder(case: Case, tree: Tree) -> str:
    def pyproject() -> str | None:
        side = tree.get("pyproject.toml")
        return None if side is None or side.is_gitlink else case.change.text(side)

    try:
        folder = find_folder(lambda path: path in tree, pyproject, "pyproject.toml")
    except InputError:
        return "nowhere, as pyproject.toml does not say where"
    return f"in `{folder}`"
