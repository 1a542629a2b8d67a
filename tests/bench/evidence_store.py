# SPDX-License-Identifier: Apache-2.0
"""The store of the benchmark: each owed cell once by each of two pools."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from fasttrack.evidence.dsse import sign
from fasttrack.evidence.predicates.common import TestResults
from fasttrack.evidence.store import write
from fasttrack.evidence.subject import unit_of
from fasttrack.vocabulary import Kind
from tests.bench.evidence_cells import cell_of, terms
from tests.evidence.keys import signer
from tests.evidence.strategies import RESULTS, good

TESTS = TestResults(passed=tuple(f"{RESULTS.passed[0]}-{n}" for n in range(12)))


def content(kind: Kind) -> dict[str, Any]:
    """What a statement must say beside the least, to be above the floors."""
    manifest = terms().manifest
    weights = str(manifest.weights.digest).removeprefix("sha256:")
    return {
        Kind.REFUSAL: {"results": TESTS},
        Kind.KERNEL_TEST: {"results": TESTS},
        Kind.STRESS: {"seeds": (1, 2, 3)},
        Kind.MODEL_EVAL: {"model": manifest.model, "weights": weights},
    }.get(kind, {})


def line(number: int) -> bytes:
    """The envelope with this number; two neighbours say the same of one cell."""
    cell, pool = cell_of(number // 2), ("lab", "cloud")[number % 2]
    facts = {"values": dict(cell.values), "unit": unit_of(cell), "run": f"{number:032x}"}
    collected = good(cell.kind, content(cell.kind), **facts)
    inputs = collected.predicate.inputs.model_copy(update={"target": "c" * 40, "apart": ()})
    signed = collected.predicate.model_copy(update={"inputs": inputs})
    return sign(replace(collected, predicate=signed), signer(pool))


if __name__ == "__main__":
    write(Path(sys.argv[1]), (line(number) for number in range(int(sys.argv[2]))))
