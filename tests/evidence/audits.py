# SPDX-License-Identifier: Apache-2.0
"""A toy unit with machine code: variants that are proved, violated, unproven, or not to be had."""

import json
import platform
from collections.abc import Mapping, Sequence
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from fasttrack.change.read import read_change, read_revision
from fasttrack.config import read_base_manifests, read_config
from fasttrack.evidence.bundle import statements
from fasttrack.evidence.choice import Choice
from fasttrack.evidence.departure import departure
from fasttrack.evidence.derived import derived
from fasttrack.evidence.inputs import InputGraph
from fasttrack.evidence.plan import Plan
from fasttrack.evidence.planning import Planner
from fasttrack.evidence.signing import signed_bundle
from fasttrack.testing import Content
from fasttrack.vocabulary import Kind
from tests.engine import MANIFEST, POLICY
from tests.evidence.keys import key, signer
from tests.evidence.lanes import trusting
from tests.evidence.plans import NOW, TABLE, engine, nothing, region
from tests.evidence.units import UNITS

STORED = Path(__file__).parent / "audited"
FOLDER = "engine/foo/"
CONTRACT = f"{FOLDER}scale.yaml"
AUDITS = Choice(kinds=frozenset({Kind.SYNC_AUDIT}))
HERE = {
    "gpu": "this processor",
    "arch": platform.machine().lower(),
    "memory_gb": 1,
    "interconnect": "none",
    "domain_gpus": 1,
}
SKELETON = "43e6d07f9687fd2a831180142d4cb4991dda200a2b13b31b8a9de5e9c9320365"
"""Of the kernel in `scale.sm_90a.cubin`."""


def cubin(name: str) -> bytes:
    """A stored cubin."""
    return (STORED / f"{name}.cubin").read_bytes()


SCALE, EARLY, OTHER = (cubin(name) for name in ("scale.sm_90a", "early.sm_90a", "scale.sm_100a"))
DIGEST = sha256(SCALE).hexdigest()


def row(place: int, name: str, code: str, *contracts: str) -> dict[str, Any]:
    """A row of the variant table."""
    whole = {"id": name, "kernel": "core", "arch": "sm_90a", "tp": 1, "rows": [place, place]}
    return whole | {"audit": {"code": f"{FOLDER}{code}", "contracts": list(contracts)}}


def toy(
    rows: Sequence[Mapping[str, Any]],
    more: Mapping[str, Content],
    tier: str = "kernel-tested",
    **manifest: Any,
) -> dict[str, Content]:
    """The engine, whose `core` has machine code.

    Args:
        rows: its variant table.
        more: further files; the stored cubins and the contract are there.
        tier: of its one region.
        manifest: other fields.
    """
    units = yaml.safe_load(UNITS)["units"]
    units[0]["data"] += [f"{FOLDER}*.cubin", f"{FOLDER}*.yaml"]
    units[0]["files"] += [f"{FOLDER}make_*.py"]
    if len(rows) > 1:
        units[0]["switch_points"] = [one["rows"][0] for one in rows[1:]]
    trust = trusting(key("lab", hardware=("h100", "h200", "here")))
    whole = engine(region(tier=tier), manifest={"units": units, **manifest}, policy=trust)
    policy, scope = yaml.safe_load(str(whole[POLICY])), yaml.safe_load(str(whole[MANIFEST]))
    policy["hardware"]["here"] = HERE
    del scope["claims"]
    files: dict[str, Content] = {
        TABLE: json.dumps({"variants": [*rows]}),
        POLICY: yaml.safe_dump(policy, sort_keys=False),
        MANIFEST: yaml.safe_dump(scope, sort_keys=False),
        CONTRACT: (STORED / "scale.yaml").read_text("utf-8"),
        f"{FOLDER}scale.cubin": SCALE,
        f"{FOLDER}early.cubin": EARLY,
        f"{FOLDER}other.cubin": OTHER,
    }
    return whole | files | dict(more)


def waiver(skeleton: str = SKELETON, expires: str = "2027-01-01") -> dict[str, Any]:
    """A manifest's waiver of unproven machine code."""
    return {
        "rule": "sync-audit",
        "path": TABLE,
        "fingerprint": skeleton,
        "reason": "the table is built once, and never written again",
        "owner": "owner",
        "expires": date.fromisoformat(expires),
    }


def checked_out(where: Path, files: Mapping[str, Content]) -> None:
    """Puts files on disk."""
    for path, content in files.items():
        assert isinstance(content, str | bytes)
        (where / path).parent.mkdir(parents=True, exist_ok=True)
        (where / path).write_bytes(content if isinstance(content, bytes) else content.encode())


def plan_of(repo: Path, at: str = "main") -> Plan:
    """A plan of the audits that a revision owes under its own policy."""
    with read_revision(repo, at) as revision:
        planner = Planner(revision, read_config(revision, folder=None, policy_file=None), None)
        return planner.make(planner.owed(AUDITS), nothing, NOW).plan


def signed(repo: Path, plan: Plan, out: Path) -> list[bytes]:
    """What `fasttrack evidence sign` makes of a bundle."""
    contents = statements(out)
    assert not contents.problems
    with read_change(repo, target="main", head=plan.commit) as change:
        config = read_config(change, folder=None, policy_file=None)
        with read_revision(repo, plan.commit) as revision:
            manifest = read_base_manifests(revision, config).named(None)
            graph = InputGraph(revision, revision.base, manifest, config)
            found = derived(revision.base, manifest, graph)
            departed = departure(change, plan, config.folder)
            return signed_bundle(contents.entries, plan, found, departed, signer("lab"))
