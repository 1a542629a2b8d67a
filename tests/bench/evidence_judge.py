# SPDX-License-Identifier: Apache-2.0
"""What the benchmark measures: read a store, verify and judge it, group it; prints the cells."""

import sys
from pathlib import Path

from fasttrack.evidence.accept import accept
from fasttrack.evidence.store import read_folder
from fasttrack.evidence.trust import question
from fasttrack.vocabulary import Kind
from tests.evidence.keys import DAY, trust

if __name__ == "__main__":
    contents = read_folder(Path(sys.argv[1]))
    judged = accept(contents.statements, trust(thresholds=dict.fromkeys(Kind, 2)), DAY)
    cells = {question(one.statement) for one in judged if one.accepted}
    sys.exit(bool(contents.problems) or len(cells) != int(sys.argv[2]) // 2)
