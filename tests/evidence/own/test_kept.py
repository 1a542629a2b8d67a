# SPDX-License-Identifier: Apache-2.0
"""The evidence that this repository keeps: who vouches for it, and for how much.

Not whether it still covers what lies here: a later change makes cells stale, as it should, and
`docs/scope.md` and `scope explain` tell the tier that is left.
"""

from pathlib import Path

import pytest

from fasttrack.cli.main import run
from fasttrack.evidence.store import Stored, read_file
from fasttrack.evidence.store_files import SUFFIXES

from .scratch import KEPT, NAME, ROOT, Scratch


def kept() -> dict[Path, tuple[Stored, ...]]:
    """Files of evidence to what they hold."""
    files = sorted(path for path in (ROOT / KEPT).iterdir() if path.name.endswith(SUFFIXES))
    return {path: read_file(path).statements for path in files}


def test_every_statement_that_is_kept_counts_on_the_day_of_its_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert kept()
    for path, statements in kept().items():
        day = max(one.statement.predicate.run.finished for one in statements).date()
        words = ["evidence", "verify", str(path), "--repo", str(ROOT), f"--as-of={day}"]
        assert run(words) == 0, capsys.readouterr().out


def test_what_is_kept_speaks_of_six_units_and_sixty_cells_of_the_second_manifest(
    scratch: Scratch,
) -> None:
    statements = [one.statement for stored in kept().values() for one in stored]
    cells = {told.cell.id for told in statements} & scratch.cells.keys()
    assert len(cells) >= 60, f"{len(cells)} cells of {NAME}"
    assert len({scratch.cells[cell] for cell in cells}) >= 6
