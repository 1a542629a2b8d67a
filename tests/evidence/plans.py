# SPDX-License-Identifier: Apache-2.0
"""Plans of a small engine, for tests."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from fasttrack.change.read import read_revision
from fasttrack.config import read_config
from fasttrack.evidence.choice import Choice
from fasttrack.evidence.coverage import Covered
from fasttrack.evidence.inputs import UnitInputs
from fasttrack.evidence.plan import Plan
from fasttrack.evidence.planning import Planned, Planner
from fasttrack.manifest.cells import Cell
from fasttrack.testing import Content, Repo
from tests.engine import MANIFEST, POLICY
from tests.evidence.units import SOURCES, lane

NOW = datetime(2026, 11, 29, 12, 0, 5, tzinfo=UTC)
EVERYTHING = Choice()
TABLE = "engine/foo/table.json"
VARIANTS = [
    {"id": "small", "kernel": "core", "arch": "sm_90a", "tp": 1, "rows": [1, 4]},
    {"id": "large", "kernel": "core", "arch": "sm_90a", "tp": 1, "rows": [5, 8]},
]
CLAIM = {
    "id": "step",
    "metric": "layer_time_us",
    "of": "layer",
    "workload": {"rows": 1, "context": 1, "acceptance": "none"},
    "ours": {"hardware": "h200", "gpu_count": 1, "backend": "foo"},
    "baseline": {"hardware": "h200", "gpu_count": 1, "backend": "auto"},
    "ratio": 1.5,
    "status": "reported",
}


def nothing(cell: Cell, inputs: UnitInputs) -> bool:
    """No cell has evidence."""
    return False


def region(**changes: Any) -> dict[str, Any]:
    """The engine's region, in the manifest's own words, with other fields."""
    found: dict[str, Any] = yaml.safe_load(lane()[MANIFEST])["scope"][0]
    return found | changes


def engine(
    *regions: Mapping[str, Any],
    manifest: Mapping[str, Any] | None = None,
    policy: str = "",
) -> dict[str, Content]:
    """The engine's files.

    Args:
        regions: the scope; by default one region at tier `served`.
        manifest: other fields of the manifest.
        policy: text to put at the end of the policy.
    """
    own = lane()
    whole = yaml.safe_load(own[MANIFEST])
    whole["scope"] = [*regions] or [region(tier="served")]
    whole["claims"] = [CLAIM]
    text = yaml.safe_dump(whole | dict(manifest or {}), sort_keys=False)
    table = json.dumps({"variants": VARIANTS})
    return SOURCES | {MANIFEST: text, POLICY: own[POLICY] + policy, TABLE: table}


def commit(where: Path, files: Mapping[str, Content]) -> Repo:
    """A repository whose `main` has these files."""
    repo = Repo(where)
    repo.commit("main", files)
    return repo


@contextmanager
def planner(where: Path) -> Iterator[Planner]:
    """What `main` owes under its own policy."""
    with read_revision(where, "main") as revision:
        yield Planner(revision, read_config(revision, folder=None, policy_file=None), None)


def planned(where: Path, choice: Choice = EVERYTHING, covered: Covered = nothing) -> Planned:
    """A plan of `main`."""
    with planner(where) as found:
        return found.make(found.owed(choice), covered, NOW)


def plan_of(where: Path, files: Mapping[str, Content] | None = None) -> Plan:
    """A plan of everything that the engine owes."""
    commit(where, files or engine())
    return planned(where).plan


def write_files(where: Path, files: Mapping[str, Content]) -> None:
    """Puts files of text on disk."""
    for path, content in files.items():
        assert isinstance(content, str)
        (where / path).parent.mkdir(parents=True, exist_ok=True)
        (where / path).write_text(content, encoding="utf-8")


def keys(cells: Sequence[Any]) -> list[tuple[str, str]]:
    """Kind and key of cells, planned or not."""
    plain = [c.cell() if hasattr(c, "cell") else c for c in cells]
    return [(c.kind.value, c.key) for c in plain]
