# SPDX-License-Identifier: Apache-2.0
"""FT505: no key comes with the evidence that it signs."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class OwnKey(StatementRule):
    """Statements signed by keys of the change itself."""

    id = "FT505"
    slug = "own-key"
    title = "no key comes with the evidence that it signs"
    level = Level.BLOCK
    refuses = (
        "A brought statement that is signed by a key which the same change adds to the policy, or "
        "puts in another key's place."
    )
    why = (
        "Whoever may write the key would vouch for their own measurements, and the approval of "
        "one would be the approval of both."
    )
    blind = (
        "A key that a change before this one added; its two approvals were the guard. Identities "
        "of sigstore bundles: FT119 and FT120 see them."
    )
    fix = "add the key in a change of its own, and the evidence when that is merged"
    want = "keys that the target branch trusts already"
