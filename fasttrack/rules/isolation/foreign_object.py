# SPDX-License-Identifier: Apache-2.0
"""FT201: code in the roots changes no object that is defined outside them."""

from fasttrack.finding import Level
from fasttrack.meaning.kinds import Kind
from fasttrack.rules.isolation.effect_rule import EffectRule


class ForeignObject(EffectRule):
    """Effects of kind `object`."""

    id = "FT201"
    slug = "foreign-object"
    title = "foreign objects stay as they are"
    level = Level.ROUTE
    refuses = (
        "An assignment, deletion, `setattr` or the like in governed code that changes an object "
        "defined outside the manifest's roots: an attribute of a module, class or function (also "
        "its `__code__` or `__defaults__`), an entry of its `__dict__`, or the content of a list, "
        "dictionary, set or tensor that a module holds. Aliases, re-exports, star imports, loops, "
        "comprehensions, patterns, exceptions, generators, `partial`, decorators, default "
        "arguments, annotations, context managers, special methods of own classes, callbacks that "
        "are handed over together with an object, and calls of functions whose source is in the "
        "repository are followed."
    )
    why = "Every other model in the process runs the changed object, and no line of it shows that."
    blind = (
        "Objects that are computed or come in from outside as parameters, what a `super` "
        "object tells of itself, what a method of a foreign object changes inside it, what a "
        "function of another package makes of a class or container that it is given, calls that "
        "go more than five functions deep, what more than two modules hand on to one another, and "
        "what comes through own modules beyond the first sixty around the changed files. "
        "The import probe sees those that happen at import."
    )
    fix = "subclass, wrap or copy the object inside the roots, and pass it where it is used"
    kind = Kind.OBJECT
    want = "governed code that changes its own objects only"
