# SPDX-License-Identifier: Apache-2.0
"""Effective tiers by the evidence of a repository's HEAD.

Where nothing is claimed, or no evidence is kept, the answer is known without judging anything; the
modules that read and judge statements are imported only past that point.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from fasttrack.case import Config
from fasttrack.change.read import read_revision
from fasttrack.config import needed
from fasttrack.errors import InputError
from fasttrack.manifest.model import Manifest
from fasttrack.vocabulary import Tier


@dataclass(frozen=True)
class AtHead:
    """What the evidence of HEAD bears out.

    Attributes:
        tree: id of the tree that was looked at; empty when none had to be, or there is none.
        tiers: manifest and region to effective tier; `declared` where it is absent.
    """

    tree: str
    tiers: Mapping[str, Mapping[str, Tier]]


def effective_at_head(
    root: Path, config: Config, manifests: Iterable[Manifest], day: date
) -> AtHead:
    """Effective tiers by the files and the evidence of HEAD; never of the working tree.

    Args:
        root: a directory, which need be no repository: then there is no evidence.
        config: policy and keys.
        manifests: whose regions.
        day: the UTC day to judge at.

    Raises:
        InputError: the files of HEAD can not be listed, or its history is not all here.
    """
    claiming = [m for m in manifests if any(r.tier is not Tier.DECLARED for r in m.scope)]
    try:
        revision = read_revision(root) if claiming else None
    except InputError:  # no repository, or no commit yet
        revision = None
    if revision is None:
        return AtHead("", {})
    with revision, needed("the evidence of HEAD"):
        if not config.holds_evidence(revision.base):
            return AtHead(revision.head_tree, {})
        from fasttrack.evidence.effective import effective_tiers  # noqa: PLC0415

        tiers = {m.name: effective_tiers(revision, config, m, day) for m in claiming}
        return AtHead(revision.head_tree, tiers)
