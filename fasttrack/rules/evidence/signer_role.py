# SPDX-License-Identifier: Apache-2.0
"""FT517: signers stay within what they may sign."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class SignerRole(StatementRule):
    """Signatures beyond what the signer may sign."""

    id = "FT517"
    slug = "signer-role"
    title = "signers stay within what they may sign"
    level = Level.NOTE
    refuses = (
        "A brought statement whose only valid signatures are of keys or identities that may not "
        "sign this kind, for this machine, or as a runner."
    )
    why = "It covers nothing. A key of one pool of machines can not vouch for another."
    blind = "Whether the machine that ran is the one that it says."
    fix = "sign with a key that the policy lets sign this"
    want = "a runner's key for this kind and machine"
