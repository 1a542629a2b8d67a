# SPDX-License-Identifier: Apache-2.0
"""What an expression may stand for, as far as the model knows.

An expression has several values when branches differ, and none when nothing is known of it: what
is made at run time, arithmetic, parameters. Only `Foreign` values can be reached into; all others
are there to follow one from where it is named to where it is changed.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fasttrack.meaning.scopes import Scope

ITEMS_LIMIT = 64
"""Elements of a container that are followed."""
VALUES_LIMIT = 8
"""Alternatives of one name that are followed."""
TEXT_LIMIT = 1_000
"""Characters of a text that is known: names are shorter, and what is joined to itself doubles."""
STEPS_LIMIT = 4
"""Steps that a finding tells; with more, nobody reads them."""
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True, slots=True)
class Foreign:
    """An object that is defined outside the roots.

    Attributes:
        name: its dotted name, such as `torch.nn.functional.relu`; `[...]` stands for an element.
        steps: how it was reached, in words, first step first.
        is_module: an import statement bound it as a module.
    """

    name: str
    steps: tuple[str, ...] = field(default=(), compare=False)
    is_module: bool = field(default=False, compare=False)

    def part(self, name: str) -> "Foreign":
        """An attribute, or an element when `name` is in brackets."""
        return Foreign(f"{self.name}{name if name[0] == '[' else f'.{name}'}", self.steps)

    def held_by(self, name: str, place: str) -> "Foreign":
        """The same object under another name."""
        if len(self.steps) >= STEPS_LIMIT:
            return self
        return Foreign(self.name, (*self.steps, f"held by `{name}` ({place})"), self.is_module)

    def through(self, *steps: str) -> "Foreign":
        """The same object, reached by more steps, which come first."""
        told = (*filter(None, steps), *self.steps)
        return Foreign(self.name, told[:STEPS_LIMIT], self.is_module)


@dataclass(frozen=True, slots=True)
class Made:
    """What a call of a foreign function or class returned."""

    of: str


@dataclass(frozen=True, slots=True)
class Text:
    """A string that is known."""

    text: str


@dataclass(eq=False, slots=True)
class Function:
    """A function with its source, own or of the repository's shared code.

    Attributes:
        node: its definition.
        scope: the scope that it closes over.
        defaults: values of parameters that have a default, by name.
        kind: `staticmethod`, `classmethod` or `property` when decorated so.
        attributes: what is set on it.
        owner: the class that it is a method of.
    """

    node: FunctionNode
    scope: "Scope"
    defaults: Mapping[str, "Values"]
    kind: str = ""
    attributes: "dict[str, Values]" = field(default_factory=dict)
    owner: "OwnClass | None" = None

    @property
    def name(self) -> str:
        """Its name."""
        return "lambda" if isinstance(self.node, ast.Lambda) else self.node.name


@dataclass(eq=False, slots=True)
class OwnClass:
    """A class with its source.

    Attributes:
        name: its name.
        bases: values of its bases, in order.
        attributes: what its body binds, and what is set on it later.
        fields: names of annotated fields, which a data class takes in this order.
        instance: the instance that its methods are read with.
        metaclass: what made it, where that is said.
    """

    name: str
    bases: "tuple[Values, ...]"
    attributes: "dict[str, Values]"
    fields: tuple[str, ...] = ()
    instance: "OwnObject | None" = None
    metaclass: "Values" = ()


@dataclass(eq=False, slots=True)
class OwnObject:
    """An instance of such a class."""

    of: OwnClass
    attributes: "dict[str, Values]" = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bound:
    """A method with its receiver: a function of ours, or by name for a value of a known kind."""

    receiver: "Value"
    function: "Function | str"


@dataclass(eq=False, slots=True)
class Items:
    """A list, tuple, set, dictionary or generator.

    Attributes:
        values: its elements.
        keys: parallel to them, None where one is not known; None for what has no keys.
        result: what a generator returns in the end.
        made_by: the call that a generator is from, with its arguments.
    """

    values: "list[Values]"
    keys: list[str | None] | None = None
    result: "Values" = ()
    made_by: "tuple[Function, tuple[Values, ...], dict[str, Values]] | None" = None

    def put(self, value: "Values", key: str | None = None) -> None:
        """Adds an element."""
        if len(self.values) < ITEMS_LIMIT:
            self.values.append(value)
            if self.keys is not None:
                self.keys.append(key)

    def under(self, key: str) -> "Values":
        """The elements under a key."""
        held = zip(self.keys or (), self.values, strict=False)
        return joined(*(value for name, value in held if name == key))

    def any(self) -> "Values":
        """Any element."""
        return joined(*self.values)


@dataclass(eq=False, slots=True)
class Holder:
    """An object of another's class that hands out, in whatever way, what it was handed."""

    held: "list[Values]"

    def put(self, *values: "Values") -> None:
        """Hands it more."""
        self.held += [value for value in values if value][: ITEMS_LIMIT - len(self.held)]

    def any(self) -> "Values":
        """Whatever it may hand out: what it holds, and what is in that."""
        inner = [v.any() for values in self.held for v in values if isinstance(v, Items)]
        return joined(UNKNOWN, *self.held, *inner)


@dataclass(eq=False, slots=True)
class Partial:
    """`functools.partial` of something; of others of its kind perhaps, which doubles.

    Attributes:
        function: what is called.
        given: its first arguments.
        named: arguments by name.
        is_method: it is called with the object that it is reached through, in front of them.
    """

    function: "Values"
    given: "tuple[Values, ...]"
    named: "tuple[tuple[str, Values], ...]"
    is_method: bool = False


@dataclass(eq=False, slots=True)
class Operation:
    """`operator.attrgetter`, `itemgetter` or `methodcaller` with what they were given."""

    name: str
    given: "tuple[Values, ...]"
    named: "tuple[tuple[str, Values], ...]" = ()


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a scope as an object: an own module, `globals()` or `locals()`."""

    scope: "Scope"


Value = (
    Foreign | Made | Text | Function | OwnClass | OwnObject | Bound | Items | Holder | Partial
    | Operation | Names
)  # fmt: skip
Values = tuple[Value, ...]
UNKNOWN: Values = ()


def reached(values: "Values", *steps: str) -> "Values":
    """Some values, the foreign ones by more steps, which come first."""
    return tuple(v.through(*steps) if isinstance(v, Foreign) else v for v in values)


def joined(*alternatives: Values) -> Values:
    """All alternatives as one."""
    if len(alternatives) == 1:
        return alternatives[0]
    return tuple(dict.fromkeys(value for values in alternatives for value in values))[:VALUES_LIMIT]


def known_text(text: str) -> Values:
    """A text as a value, unless it is too long to name anything."""
    return (Text(text),) if len(text) <= TEXT_LIMIT else UNKNOWN


def texts(values: Values) -> tuple[str, ...]:
    """The strings among some values."""
    return tuple(value.text for value in values if isinstance(value, Text))


def text(values: Values) -> str | None:
    """The one string that some values are; None when it is not known."""
    known = texts(values)
    return known[0] if len(known) == 1 == len(values) else None
