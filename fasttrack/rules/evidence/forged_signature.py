# SPDX-License-Identifier: Apache-2.0
"""FT504: signatures are what their keys make."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class ForgedSignature(StatementRule):
    """Signatures that the named key did not make."""

    id = "FT504"
    slug = "forged-signature"
    title = "signatures are what their keys make"
    level = Level.BLOCK
    refuses = (
        "A brought statement that names a key of the policy, with a signature that this key did "
        "not make of it."
    )
    why = (
        "Somebody passes off a statement as the runner's, or altered what the runner signed. One "
        "such signature voids the statement's other ones here, whoever they are of."
    )
    blind = "A statement that was signed with a stolen key."
    fix = "take the file as the signing job wrote it; nothing else mends it"
    want = "a signature that the key has made of this statement"
