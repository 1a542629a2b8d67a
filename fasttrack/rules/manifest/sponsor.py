# SPDX-License-Identifier: Apache-2.0
"""FT312: people answer for the path."""

import re
from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Tree
from fasttrack.finding import Level
from fasttrack.manifest.consistency import Fault, Loc
from fasttrack.manifest.model import Manifest
from fasttrack.manifest.words import NOBODY
from fasttrack.rules.manifest.edited import ManifestRule

PLACEHOLDERS = frozenset(NOBODY)
"""Names that `fasttrack init` writes when it is told none."""
AUTOMATA = frozenset({"dependabot", "github-actions", "renovate", "copilot"})
"""Accounts of services that do not say so in their names."""
_WORD = re.compile(r"[a-z0-9]+")


class Sponsor(ManifestRule):
    """Placeholders, bots, and tools that would answer for their own work."""

    id = "FT312"
    slug = "sponsor"
    title = "sponsor, owner and backup are people"
    level = Level.ROUTE
    refuses = (
        "In an added or edited manifest: a sponsor, owner, backup or waiver owner that `fasttrack "
        "init` left as `change-me`, or whose name has the word `bot` or is a known service's; a "
        "sponsor whom `assisted_by` also names."
    )
    why = "When the path breaks at night, a name in this file is called."
    blind = "Whether the person exists and agreed; the decision asks the sponsor."
    fix = "write the name of somebody who has agreed"
    waivable = False

    def faults(self, case: Case, manifest: Manifest, tree: Tree) -> Iterator[Fault]:
        """Looks at every name of the manifest."""
        for loc, role, name in _named(manifest):
            if kind := _not_a_person(name):
                yield Fault(loc, f"the {role} '{name}', {kind}", "a person")
        own = manifest.sponsor.removeprefix("@").lower()
        for i, tool in enumerate(manifest.assisted_by):
            if own in re.split(r"[^a-z0-9-]+", tool.lower()):
                saw = f"the sponsor '{manifest.sponsor}', whom 'assisted_by' also names"
                yield Fault(("assisted_by", i), saw, "a sponsor who is not one of the tools")


def _named(manifest: Manifest) -> Iterator[tuple[Loc, str, str]]:
    yield ("sponsor",), "sponsor", manifest.sponsor
    yield ("lease", "owner"), "owner", manifest.lease.owner
    yield ("lease", "backup"), "backup", manifest.lease.backup
    for i, waiver in enumerate(manifest.waivers):
        yield ("waivers", i, "owner"), "owner of a waiver", waiver.owner


def _not_a_person(handle: str) -> str:
    name = handle.removeprefix("@").lower()
    if name in PLACEHOLDERS:
        return "a placeholder"
    account = name.partition("/")[0]
    return "a bot" if account in AUTOMATA or "bot" in _WORD.findall(name) else ""
