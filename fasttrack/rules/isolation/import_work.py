# SPDX-License-Identifier: Apache-2.0
"""FT214: importing does no work."""

from fasttrack.finding import Level
from fasttrack.meaning.kinds import Kind
from fasttrack.rules.isolation.effect_rule import EffectRule


class ImportWork(EffectRule):
    """Effects of kind `work`."""

    id = "FT214"
    slug = "import-work"
    title = "importing does no work"
    level = Level.ROUTE
    refuses = (
        "Work at the time of import: waiting, touching a GPU, loading or compiling extensions and "
        "checkpoints, joining a process group."
    )
    why = (
        "Everybody who imports the package pays for it, whether or not the path is switched on; "
        "and it fails where there is no GPU."
    )
    blind = "Work that has no name in the table, such as a long loop."
    fix = "do it in a function that is called when the path is switched on"
    kind = Kind.WORK
    want = "an import that only defines"
