# SPDX-License-Identifier: Apache-2.0
"""FT206: foreign registries stay as they are."""

from fasttrack.finding import Level
from fasttrack.meaning.kinds import Kind
from fasttrack.rules.isolation.effect_rule import EffectRule


class ForeignRegistry(EffectRule):
    """Effects of kind `registry`."""

    id = "FT206"
    slug = "foreign-registry"
    title = "foreign registries stay as they are"
    level = Level.ROUTE
    refuses = (
        "A call or decorator of something foreign that is named `register`, `register_...` or "
        "`..._register`, and an entry of a foreign container that is set or deleted. A function of "
        "this repository whose text shows that it keeps no table passes, whatever its name."
    )
    why = "What others look up there is then this path's, whether or not the path is switched on."
    blind = (
        "Registries under other names, such as `@book.provides(...)`, and registration that a "
        "metaclass outside the roots does "
        "for every subclass."
    )
    fix = (
        "list the path in a wired file, where the switch decides, instead of registering it on "
        "import"
    )
    kind = Kind.REGISTRY
    want = "registration in the path's own tables, or in wired files"
