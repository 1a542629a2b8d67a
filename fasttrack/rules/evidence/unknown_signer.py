# SPDX-License-Identifier: Apache-2.0
"""FT516: statements are signed by somebody whom the policy knows."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class UnknownSigner(StatementRule):
    """Statements that nobody known has signed."""

    id = "FT516"
    slug = "unknown-signer"
    title = "statements are signed by somebody whom the policy knows"
    level = Level.NOTE
    refuses = (
        "A brought statement that nobody has signed whose signature counts that day: keys or "
        "identities that the policy does not know, that are revoked, expired or not yet valid, or "
        "that can not be verified here."
    )
    why = "It covers nothing: it is the author's own report."
    blind = "Who the signer is."
    fix = "have the cell measured and signed by a runner of the policy"
    want = "a signature of a runner's key that is valid that day"
