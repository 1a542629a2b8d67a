# SPDX-License-Identifier: Apache-2.0
"""The owed cells of the benchmark, and what their statements are held against.

Each cell is owed by one manifest, kinds in turn; the inputs of its unit are given, as finding them
is a matter of the repository and not of its evidence.
"""

from functools import cache

from fasttrack.evidence.inputs import UnitInputs
from fasttrack.evidence.terms import Terms
from fasttrack.manifest.cells import Cell, cell
from fasttrack.manifest.load import load_manifest
from fasttrack.manifest.words import Metric
from fasttrack.policy.load import load_policy
from fasttrack.vocabulary import Kind
from tests.engine import MANIFEST, POLICY, files
from tests.evidence.keys import DAY, trust

KINDS = tuple(Kind)
CLAIM = """claims:
  - id: step
    metric: layer_time_us
    of: layer
    workload: {rows: 1, context: 1, acceptance: none}
    ours: {hardware: h200, gpu_count: 1, backend: foo}
    baseline: {hardware: h200, gpu_count: 1, backend: auto}
    ratio: 1.5
    status: reported
"""


def cell_of(number: int) -> Cell:
    """The owed cell with this number."""
    values = {"unit": "kda", "hardware": "h200", "rows": number, "draft_tokens": 0}
    kind = KINDS[number % len(KINDS)]
    if kind is Kind.PERFORMANCE:
        values |= {"metric": Metric.LAYER_TIME_US.value, "claim": "step"}
    return cell(kind, "r", values)


@cache
def terms() -> Terms:
    """A small engine's policy and manifest, with a threshold of two pools for every kind."""
    texts = files()
    policy = load_policy(texts[POLICY].encode(), POLICY)
    trusted = trust(thresholds=dict.fromkeys(Kind, 2))
    manifest = load_manifest((texts[MANIFEST] + CLAIM).encode(), MANIFEST)
    return Terms(policy.model_copy(update={"trust": trusted}), manifest, DAY)


@cache
def inputs_of(unit: str) -> UnitInputs:
    """A unit's inputs, with the digests that the statements name."""
    found = UnitInputs(unit, (), (), ())
    found.__dict__.update(digest="a" * 64, tests_digest="b" * 64)
    return found
