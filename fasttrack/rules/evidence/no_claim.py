# SPDX-License-Identifier: Apache-2.0
"""FT532: measured claims are borne out."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class NoClaim(StatementRule):
    """Measurements that bear out no claim."""

    id = "FT532"
    slug = "no-claim"
    title = "measured claims are borne out"
    level = Level.NOTE
    refuses = (
        "A brought trusted performance statement that does not bear out the claim of its "
        "conditions: a ratio inside the noise, below the claimed one, or on hardware without a "
        "bandwidth."
    )
    why = "It covers nothing: there is no such claim."
    blind = "Conditions that the claim does not name."
    fix = "claim what was measured, or measure more pairs"
    want = "a ratio that stands out of its spread, at least the claimed one"
