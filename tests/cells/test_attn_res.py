# SPDX-License-Identifier: Apache-2.0
"""The residual mix at the rows of a cell: every variant that serves them, through the gates.

The variants run in a process of their own, on memory of this one's, see `docs/validation.md`.
Cubins come from where `kimi-k3 kernels build` leaves them, made on this machine or another: by the
user's entry and not by HOME, which `evidence collect` sets anew. They are no files of the tree;
what was launched is told by its digest, and counts only if that was audited.
"""

import os
import pwd
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fasttrack.pytest_plugin import Recorder
from kimi_k3.decode.kernels.catalogue import table
from kimi_k3.validation.budget import Budget
from kimi_k3.validation.gates import GATES
from kimi_k3.validation.machine import machine
from kimi_k3.validation.record import record
from kimi_k3.validation.report import as_text
from kimi_k3.validation.subjects import attn_res
from kimi_k3.validation.validate import validate

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="cubins run on a GPU alone")
CACHE = Path(pwd.getpwuid(os.getuid()).pw_dir) / ".cache" / "kimi-k3" / "kernels"
CELL = Budget(
    "cell", cases=3, steps=0, memory=1, repeats=2, replays=2, changes=1, pairs=0, times=0, rotated=0
)
ASKED = [gate for gate in GATES if gate.name in {"numerics", "memory", "protocol", "identity"}]
KERNELS = {one.id: one.kernel for one in table("attn_res").variants}


@pytest.mark.fasttrack_cells({"rows": 1}, {"rows": 64})
def test_the_variants_of_a_cell_pass_the_gates_at_its_rows(
    fasttrack_cell: Mapping[str, int],
    fasttrack_seeds: tuple[int, ...],
    fasttrack_record: Recorder,
) -> None:
    rows, here = fasttrack_cell["rows"], machine("cuda")
    found = [
        replace(one, candidate=replace(one.candidate, rows=(rows, rows)))
        for one in attn_res(here.arch, CACHE)
        if one.candidate.rows[0] <= rows <= one.candidate.rows[1]
    ]
    assert len({KERNELS[one.candidate.name] for one in found}) == len(set(KERNELS.values()))
    report = validate(found, CELL, fasttrack_seeds, here, controls=1, gates=ASKED, together=True)
    record(report, fasttrack_record, KERNELS)
    assert report.passed, as_text(report)
