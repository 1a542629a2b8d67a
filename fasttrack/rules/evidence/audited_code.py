# SPDX-License-Identifier: Apache-2.0
"""FT534: what was measured is what was audited."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class AuditedCode(StatementRule):
    """Runs of machine code that no audit looked at."""

    id = "FT534"
    slug = "audited-code"
    title = "what was measured is what was audited"
    level = Level.NOTE
    refuses = (
        "A brought trusted kernel test, stress run or measured claim that launched other machine "
        "code than the audit of the same unit, architecture and variant names. Where the region's "
        "tier owes audits, also one of which there is no audit that covers, or whose launches do "
        "not tell variant and digest."
    )
    why = (
        "It covers nothing: compilers order loads anew in every build, so tests of one build say "
        "nothing of another, and nobody looked at the one that ran."
    )
    blind = "Machine code that ran unrecorded; and whether what was audited is what is shipped."
    fix = (
        "build both with the manifest's toolchain, plan, collect the audits, and measure again "
        "what ran other code"
    )
    want = "launches of the machine code whose digest the audit of their variant names"
