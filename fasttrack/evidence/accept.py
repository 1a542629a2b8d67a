# SPDX-License-Identifier: Apache-2.0
"""From stored envelopes to statements that count."""

from collections.abc import Sequence
from datetime import date

from fasttrack.evidence.dsse import Signed, verified_key_ids
from fasttrack.evidence.store import Stored
from fasttrack.evidence.trust import Judged, Signatures, judge
from fasttrack.policy.trust import Trust


def accept(stored: Sequence[Stored], trust: Trust, day: date) -> tuple[Judged, ...]:
    """Verifies every signature and judges every statement; in the order given.

    Args:
        stored: everything that there is, from all stores: thresholds count over them.
        trust: the trust of the policy in force.
        day: the UTC day to judge at.
    """
    signed = [(one.statement, signatures(one.signed, trust)) for one in stored]
    return judge(signed, trust, day)


def signatures(signed: Signed, trust: Trust) -> Signatures:
    """Who signed an envelope; what a sigstore bundle needs is imported for one alone."""
    if signed.bundle:
        from fasttrack.evidence.sigstore_bundle import bundle_signatures  # noqa: PLC0415

        return bundle_signatures(signed, trust)
    named = tuple(one.key_id for one in signed.signatures)
    return Signatures(named, verified_key_ids(signed, trust.keys))
