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
        "branch, or had files in no digest otherwise than there that neither stand so after "
        "the merge nor did at one later commit of that branch."
    )
    why = "It covers nothing: what was measured is not what would be merged."
    blind = (
        "What the target branch changed since in files that no digest and no boundary holds; the "
        "maximum age bounds what they do. How old the commit is that a run started from: it may be "
        "any of the last few thousand. Where changes are merged by rebasing, each of their "
        "commits was the target branch."
    )
    fix = "fasttrack evidence plan, for what lacks"
    want = "the digests of the unit's files and tests after the merge, in surroundings that were"
