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
        "A brought trusted statement in which nothing of the path was seen to run, or something "
        "fell back; also a stress run, an evaluation or a measured claim whose result the measured "
        "process could have written itself."
    )
    why = (
        "It covers nothing: the fallback passes every test, and from `stress-tested` on another "
        "process has to judge."
    )
    blind = "Kernels that ran and whose result was thrown away."
    fix = "mend why the path did not run, or measure with the harness"
    want = "launches, no fallbacks, and from `stress-tested` on `isolation: harness`"
