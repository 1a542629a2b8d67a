# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a statement that a change brings; each has the rule of its name.

Known without reading any statement, so that rules can name them; `fasttrack.evidence.weighed` finds
out which of them a statement has.
"""

from enum import StrEnum


class Fault(StrEnum):
    """One thing that is wrong, by the slug of the rule that reports it."""

    FORGED = "forged-signature"
    OWN_KEY = "own-key"
    REUSED_RUN = "reused-run"
    CONTRADICTION = "contradiction"
    IMPOSSIBLE = "impossible-time"
    REVOKED = "revoked-signer"
    FUTURE = "future-run"
    PLAN = "plan-seeds"
    DISAGREEMENT = "disagreement"
    CUBIN = "one-cubin"
    INTERLEAVED = "interleaved"
    CONFIDENCE = "confidence"
    SIGNER = "unknown-signer"
    ROLE = "signer-role"
    POOLS = "too-few-pools"
    OTHER_BYTES = "other-bytes"
    UNASKED = "unasked-cell"
    BOUNDARY = "moved-boundary"
    AGE = "too-old"
    MACHINE = "other-machine"
    VERSIONS = "other-versions"
    UNDECLARED = "undeclared-inputs"
    EXECUTION = "execution-proof"
    SKIPPED = "skipped-tests"
    FAILED = "failed-run"
    ADMITTED = "admitted"
    FLOORS = "below-floor"
    EVALUATION = "evaluation"
    NO_CLAIM = "no-claim"
    MIXED = "mixed-boundary"
    CODE = "audited-code"
