# SPDX-License-Identifier: Apache-2.0
"""FT205: operators are defined in the path's own namespace."""

from fasttrack.finding import Level
from fasttrack.meaning.kinds import Kind
from fasttrack.rules.isolation.effect_rule import EffectRule


class ForeignOperators(EffectRule):
    """Effects of kind `operators`."""

    id = "FT205"
    slug = "foreign-operators"
    title = "operators are defined in the path's own namespace"
    level = Level.ROUTE
    refuses = (
        "`torch.library` used on an operator or namespace that is not the path's own, an "
        "implementation given through `py_impl`, or an attribute set below `torch.ops`. A "
        "namespace is the path's own when it is the manifest's name or a folder on the way to one "
        "of its roots, or begins with one of them and `_`."
    )
    why = (
        "An operator is dispatched by its name for the whole process: overriding one changes "
        "every model."
    )
    blind = (
        "Names that are computed, operators of the engine in a namespace that is called like a "
        "folder above the roots, and operators registered by compiled code."
    )
    fix = 'define an operator of your own, such as `torch.library.custom_op("<name>::step")`'
    kind = Kind.OPERATORS
    want = "operators in a namespace of the path's own"
