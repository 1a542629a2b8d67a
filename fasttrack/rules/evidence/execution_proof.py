# SPDX-License-Identifier: Apache-2.0
"""FT526: the path itself ran."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class ExecutionProof(StatementRule):
    """Runs in which something else ran."""

    id = "FT526"
    slug = "execution-proof"
    title = "the path itself ran"
    level = Level.NOTE
    refuses = (
        "A brought trusted statement in which nothing of the path was seen to run, something fell "
        "back, or the stressed process could have written its own result."
    )
    why = "It covers nothing: the fallback passes every test."
    blind = "Kernels that ran and whose result was thrown away."
    fix = "mend why the path did not run, or measure with the harness"
    want = "launches, no fallbacks, and for stress an isolated judge"
