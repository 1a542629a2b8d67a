# SPDX-License-Identifier: Apache-2.0
"""FT202: the import system stays as it is."""

from fasttrack.finding import Level
from fasttrack.meaning.kinds import Kind
from fasttrack.rules.isolation.effect_rule import EffectRule


class ModuleTable(EffectRule):
    """Effects of kind `modules`."""

    id = "FT202"
    slug = "module-table"
    title = "the import system stays as it is"
    level = Level.ROUTE
    refuses = (
        "A change of `sys.modules`, `sys.path`, `sys.meta_path`, `sys.path_hooks` or of something "
        "in `importlib`, and `importlib.reload` and its like. A module's own entry in "
        "`sys.modules` is its own."
    )
    why = (
        "Later imports, anywhere in the process, get another module than the one that was reviewed."
    )
    blind = (
        "Changes through names that are computed, and files put where Python looks (FT211, FT218)."
    )
    fix = "import what you need by its name, and keep replacements inside the roots"
    kind = Kind.MODULES
    want = "imports that find what they found before"
