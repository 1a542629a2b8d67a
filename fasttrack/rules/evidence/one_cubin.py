# SPDX-License-Identifier: Apache-2.0
"""FT513: one variant is one machine code."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class OneCubin(StatementRule):
    """Variants with two machine codes."""

    id = "FT513"
    slug = "one-cubin"
    title = "one variant is one machine code"
    level = Level.ROUTE
    refuses = (
        "A brought audit, or the target's of a cell that the change owes, of a variant of which "
        "another trusted audit of the same bytes names other machine code."
    )
    why = "Then the build is not reproducible, or one audit was of code that is not shipped."
    blind = (
        "Kernels that are compiled where they run, whose statements name other digests for good "
        "reasons."
    )
    fix = "build with the policy's toolchain and audit again"
    of_relied = True
    want = "one cubin for a variant of one architecture"
