# SPDX-License-Identifier: Apache-2.0
"""FT204: built-in names stay as they are."""

from fasttrack.finding import Level
from fasttrack.meaning.kinds import Kind
from fasttrack.rules.isolation.effect_rule import EffectRule


class BuiltinNames(EffectRule):
    """Effects of kind `builtins`."""

    id = "FT204"
    slug = "builtin-names"
    title = "built-in names stay as they are"
    level = Level.ROUTE
    refuses = (
        "A change of the module `builtins`, under that name, as `__builtins__` or through its "
        "namespace."
    )
    why = "Every module of the process looks names up there."
    blind = (
        "Names that are computed; the import probe sees what they do at import. Built-in classes "
        "changed through memory (FT208)."
    )
    fix = "define a function of another name inside the roots"
    kind = Kind.BUILTINS
    want = "built-in names that mean what they mean everywhere"
