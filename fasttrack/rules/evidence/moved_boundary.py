# SPDX-License-Identifier: Apache-2.0
"""FT521: files just outside the roots are as they were measured."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class MovedBoundary(StatementRule):
    """Statements whose surroundings changed."""

    id = "FT521"
    slug = "moved-boundary"
    title = "files just outside the roots are as they were measured"
    level = Level.NOTE
    refuses = (
        "A brought trusted statement after whose run a file changed, on the target branch or by "
        "the change, that the unit or its tests import directly from outside the roots. Bytes that "
        "neither of them has had are for FT519."
    )
    why = "By the policy it covers nothing, or for the first 14 days only."
    blind = "Deeper dependencies."
    fix = "measure again, `fasttrack evidence plan` asks for it"
    want = "the boundary that was measured"
