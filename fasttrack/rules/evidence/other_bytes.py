# SPDX-License-Identifier: Apache-2.0
"""FT519: evidence speaks of the bytes after the merge."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class OtherBytes(StatementRule):
    """Statements of other bytes."""

    id = "FT519"
    slug = "other-bytes"
    title = "evidence speaks of the bytes after the merge"
    level = Level.NOTE
    refuses = (
        "A brought trusted statement that binds to other files or tests than its cell's unit has "
        "after the merge, or to another unit; or whose run started from no commit of the target "
        "branch, or from one that it had left more than 14 days before, or had files otherwise "
        "than there in a way that neither the change makes them nor that branch did."
    )
    why = "It covers nothing: what was measured is not what would be merged."
    blind = (
        "What the target branch changed since in files that no digest and no boundary holds; the "
        "maximum age bounds what they do. What a run had of prose, executable bits and files of "
        "the roots that no digest holds. Where changes are merged by rebasing, each of their "
        "commits was the target branch."
    )
    fix = "fasttrack evidence plan, for what lacks"
    want = "the digests of the unit's files and tests after the merge, in surroundings that were"
