# SPDX-License-Identifier: Apache-2.0
"""FT524: evidence is of accepted versions."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class OtherVersions(StatementRule):
    """Statements of other toolchains."""

    id = "FT524"
    slug = "other-versions"
    title = "evidence is of accepted versions"
    level = Level.NOTE
    refuses = (
        "A brought trusted statement that tells a version which the policy's `toolchain` does not "
        "accept, or does not tell one that it must."
    )
    why = "It covers nothing."
    blind = "Packages that the policy does not name."
    fix = "measure with the versions of the policy's toolchain"
    want = "versions within the policy's toolchain"
