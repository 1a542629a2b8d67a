# SPDX-License-Identifier: Apache-2.0
"""The gate: which deployments and steps the specialised path may take.

It holds no limit of its own. Bounds come from the packaged scope manifest, the same file that
`fasttrack check` enforces.
"""

from importlib.resources import files
from pathlib import Path

from fasttrack.manifest.admission import DEFAULT_ADMIT_TIER, Question, RegionAnswer, ask
from fasttrack.manifest.load import load_manifest
from fasttrack.manifest.model import Manifest
from fasttrack.vocabulary import Tier

MANIFEST = "kimi-k3-decode.yaml"


def packaged_manifest() -> Manifest:
    """The scope manifest that this installation was built with.

    Raises:
        InputError: the file is missing or malformed; nothing is admitted then.
    """
    packaged = files("kimi_k3") / "manifests" / MANIFEST
    if packaged.is_file():
        return load_manifest(packaged.read_bytes(), MANIFEST)
    checkout = Path(__file__).resolve().parents[2] / "manifests" / MANIFEST
    return load_manifest(checkout.read_bytes(), MANIFEST)


def admitting_region(
    manifest: Manifest, question: Question, admit_tier: Tier = DEFAULT_ADMIT_TIER
) -> RegionAnswer | None:
    """The first region that admits a configuration, None when `auto` must take it."""
    return next((a for a in ask(manifest, question, admit_tier) if a.admits), None)


def refusals(
    manifest: Manifest, question: Question, admit_tier: Tier = DEFAULT_ADMIT_TIER
) -> tuple[str, ...]:
    """Every reason why no region admits a configuration; empty when one does.

    Args:
        manifest: the scope.
        question: deployment and step.
        admit_tier: lowest effective tier that may be admitted.

    Returns:
        `region: reason` lines in the manifest's order.
    """
    answers = ask(manifest, question, admit_tier)
    if any(a.admits for a in answers):
        return ()
    return tuple(f"{a.region}: {reason}" for a in answers for reason in (*a.outside, *a.below))
