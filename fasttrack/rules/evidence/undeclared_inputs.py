# SPDX-License-Identifier: Apache-2.0
"""FT525: measured code reads declared files only."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class UndeclaredInputs(StatementRule):
    """Runs that read what no digest holds."""

    id = "FT525"
    slug = "undeclared-inputs"
    title = "measured code reads declared files only"
    level = Level.NOTE
    refuses = (
        "A brought trusted statement whose run loaded or opened files of the repository that no "
        "digest of it holds."
    )
    why = "It covers nothing: a change of those files would not make it stale."
    blind = "Files that a library opens by itself, or another process."
    fix = "give the files to the unit's `files`, `data` or `tests`, and measure again"
    want = "inputs that the manifest declares"
