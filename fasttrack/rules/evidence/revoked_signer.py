# SPDX-License-Identifier: Apache-2.0
"""FT509: no revoked key is still in use."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class RevokedSigner(StatementRule):
    """Keys that sign on after their revocation."""

    id = "FT509"
    slug = "revoked-signer"
    title = "no revoked key is still in use"
    level = Level.ROUTE
    refuses = (
        "A brought statement that is validly signed by a key or identity of the policy, about a "
        "run that ended on the day of its revocation or later."
    )
    why = "A key that was taken back signs on: it may be in the wrong hands."
    blind = "A run that pretends to be older: when a statement was signed shows in no envelope."
    fix = "find out who holds the key; measure and sign with one that is valid"
    want = "runs that are signed by keys in force"
