# SPDX-License-Identifier: Apache-2.0
"""What this installation was built with: scope manifest, the policy's words to the gate, and tiers.

A wheel carries the files; a checkout is read from its `manifests/` folder. Manifest and policy are
the ones that `fasttrack check` enforces. The effective tiers are written when a release is built,
by `fasttrack scope docs --effective`; without that file nothing is borne out by evidence.
"""

from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from fasttrack import strict_yaml
from fasttrack.manifest.admission import DEFAULT_ADMIT_TIER
from fasttrack.manifest.load import load_manifest
from fasttrack.manifest.model import Manifest
from fasttrack.vocabulary import Tier

MANIFEST = "kimi-k3-decode.yaml"
POLICY = "policy.yaml"
EFFECTIVE = "effective.json"


class Bandwidth(BaseModel):
    """Memory bandwidth of a product."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    peak: float
    """Of the data sheet, in TB/s; nothing is faster."""


class Product(BaseModel):
    """One entry of the policy's hardware vocabulary, as far as a running server needs it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    gpu: str
    """Product name as the driver reports it."""
    bandwidth_tb_s: Bandwidth | None = None
    """Absent where the policy does not know it."""


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


class EffectiveTiers(BaseModel):
    """What `fasttrack scope docs --effective` writes, as far as the gate needs it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    manifests: Mapping[str, Mapping[str, Tier]]
    """Manifest and region to the tier that evidence bears out."""


def packaged_manifest(name: str = MANIFEST) -> Manifest:
    """A scope manifest.

    Args:
        name: its file; the decode path's own by default.

    Raises:
        InputError: it is malformed; nothing is admitted then.
    """
    return load_manifest(_read(name), name)


def packaged_policy() -> PolicyFacts:
    """The policy's part for a running server.

    Raises:
        InputError: it is malformed; nothing is admitted then.
    """
    return strict_yaml.validate(strict_yaml.parse(_read(POLICY), POLICY), PolicyFacts)


def packaged_effective(manifest: str) -> Mapping[str, Tier]:
    """Region of a manifest to the tier that evidence bore out; empty without the file.

    Raises:
        InputError: the file is malformed; nothing is admitted then.
    """
    path = _path(EFFECTIVE)
    if not path.is_file():
        return {}
    document = strict_yaml.parse(path.read_bytes(), EFFECTIVE)  # JSON is YAML
    return strict_yaml.validate(document, EffectiveTiers).manifests.get(manifest, {})


def _read(name: str) -> bytes:
    return _path(name).read_bytes()


def _path(name: str) -> Traversable:
    packaged = files("kimi_k3") / "manifests"
    # An installation reads nothing else: what lies beside it may be anybody's.
    if packaged.is_dir():
        return packaged / name
    return Path(__file__).resolve().parents[2] / "manifests" / name
