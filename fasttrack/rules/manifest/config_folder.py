# SPDX-License-Identifier: Apache-2.0
"""FT324: the policy is read from the same folder before and after."""

from collections.abc import Iterator

from fasttrack.case import Case
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
    waivable = False

    def check(self, case: Case) -> Iterator[Finding]:
        """Reports a folder that moves."""
        if case.folder_moves_to:
            folder = f"in `{case.config.folder}`"
            yield self.finding(
                saw=f"the policy is looked for {case.folder_moves_to} instead of {folder}",
                want=folder,
            )
