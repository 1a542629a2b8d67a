# SPDX-License-Identifier: Apache-2.0
"""What the benchmark measures: read a store, verify and judge it, and answer every owed cell."""

import sys
from pathlib import Path

from fasttrack.evidence.accept import accept
from fasttrack.evidence.coverage import Evidence
from fasttrack.evidence.status import Status
from fasttrack.evidence.store import read_folder
from tests.bench.evidence_cells import cell_of, inputs_of, terms

if __name__ == "__main__":
    contents = read_folder(Path(sys.argv[1]))
    judged = accept(contents.statements, terms().policy.trust, terms().day)
    evidence = Evidence(judged)
    cells = [cell_of(number) for number in range(int(sys.argv[2]) // 2)]
    answers = [evidence.answer(cell, terms(), inputs_of) for cell in cells]
    whole = all(answer.status is Status.COVERED for answer in answers)
    sys.exit(bool(contents.problems) or not whole)
