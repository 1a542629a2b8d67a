# SPDX-License-Identifier: Apache-2.0
"""What this installation was built with: the scope manifest and the policy's words to the gate.

A wheel carries both files; a checkout is read from its `manifests/` folder. They are the same
files that `fasttrack check` enforces.
"""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from fasttrack import strict_yaml
from fasttrack.manifest.admission import DEFAULT_ADMIT_TIER
from fasttrack.manifest.load import load_manifest
from fasttrack.manifest.model import Manifest
from fasttrack.vocabulary import Tier

MANIFEST = "kimi-k3-decode.yaml"
POLICY = "policy.yaml"


class Product(BaseModel):
    """One entry of the policy's hardware vocabulary, as far as a running server needs it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    gpu: str
    """Product name as the driver reports it."""


class PolicyFacts(BaseModel):
    """The part of the policy that binds a running server; the checker reads the rest."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    admit_tier: Tier = DEFAULT_ADMIT_TIER
    """Lowest effective tier that is admitted."""
    hardware: Mapping[str, Product]
    """Hardware vocabulary by id."""

    def hardware_id(self, found: str) -> str:
        """The id of a product by the driver's name for it, or that name when no entry has it."""
        return next((key for key, known in self.hardware.items() if known.gpu == found), found)


def packaged_manifest() -> Manifest:
    """The scope manifest.

    Raises:
        InputError: it is malformed; nothing is admitted then.
    """
    return load_manifest(_read(MANIFEST), MANIFEST)


def packaged_policy() -> PolicyFacts:
    """The policy's part for a running server.

    Raises:
        InputError: it is malformed; nothing is admitted then.
    """
    return strict_yaml.validate(strict_yaml.parse(_read(POLICY), POLICY), PolicyFacts)


def _read(name: str) -> bytes:
    packaged = files("kimi_k3") / "manifests" / name
    if packaged.is_file():
        return packaged.read_bytes()
    return (Path(__file__).resolve().parents[2] / "manifests" / name).read_bytes()
