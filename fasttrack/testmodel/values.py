# SPDX-License-Identifier: Apache-2.0
"""What an expression stands for when a test is followed.

Plain Python constants, lists, tuples, sets, ranges and dictionaries stand for themselves. What the
text does not tell is `Opaque`: canonical words in which local names are replaced by what they hold,
so that two spellings of one computation are equal and a renamed variable changes nothing.
"""

import ast
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Value = Any
"""One of the classes here, or a Python constant or container that holds such values."""
Namespace = dict[str, Value]
Cuts = frozenset[str]
"""What was cut off a result on its way to an assertion, see `cuts`."""
NOTHING_CUT: Cuts = frozenset()

WORDS_LIMIT = 240
"""Characters of canonical words; longer ones end in their digest, so that they can not grow."""
SHOWN_ITEMS = 64
"""Items of a container that its words spell out."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that the text does not tell.

    Attributes:
        words: canonical words for it; dotted when it is a thing of another package.
        external: it is such a thing, and `words` is its name.
        cuts: what was cut off it.
    """

    words: str
    external: bool = False
    cuts: Cuts = field(default=NOTHING_CUT, compare=False)


@dataclass(frozen=True, slots=True)
class Either:
    """One of several values, each under the condition that selects it."""

    options: tuple[tuple[str, Value], ...]

    def values(self) -> Iterator[Value]:
        """The values alone."""
        return (value for _, value in self.options)


@dataclass(eq=False, slots=True)
class Claim:
    """A truth value whose making the text tells: a comparison, or a call like `torch.allclose`.

    Attributes:
        kind: the comparing function, or `==`, `bound` and the like.
        text: canonical words of what is compared.
        strength: how much it says when it is asserted, see `strength`.
        tolerances: dimension such as `rtol` to its value.
        cuts: what was cut off both sides of it.
    """

    kind: str
    text: str
    strength: int
    tolerances: Mapping[str, Value] = field(default_factory=dict)
    cuts: Cuts = NOTHING_CUT


@dataclass(eq=False, slots=True)
class Scope:
    """The names of a function or module, and those around it."""

    names: Namespace
    around: "Scope | None" = None
    module: "Module | None" = None
    shared: set[str] = field(default_factory=set)
    """Names that `global` and `nonlocal` statements send outwards."""


@dataclass(eq=False, slots=True)
class Function:
    """A function whose text is there.

    Attributes:
        node: its definition.
        scope: the names around it.
        defaults: values of its defaults by parameter.
        bound: what its first parameter is bound to, for a method.
        wraps: the function that it stands for, as `functools.wraps` says.
        marks: what decorators have put on it, nearest first.
    """

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope
    defaults: Namespace
    bound: Value = None
    is_bound: bool = False
    wraps: Value = None
    marks: "list[Mark]" = field(default_factory=list)
    attributes: Namespace = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its name in the text."""
        return "<lambda>" if isinstance(self.node, ast.Lambda) else self.node.name


@dataclass(eq=False, slots=True)
class Class:
    """A class whose text is there."""

    name: str
    node: ast.ClassDef
    bases: tuple[Value, ...]
    names: Namespace
    scope: Scope
    marks: "list[Mark]" = field(default_factory=list)
    is_record: bool = False

    def find(self, name: str) -> tuple[bool, Value]:
        """Whether the class or a base with a text has the name, and what it is there."""
        for owner in self.line():
            if name in owner.names:
                return True, owner.names[name]
        return False, None

    def line(self) -> "Iterator[Class]":
        """The class and its bases, nearest first, each once."""
        seen: set[int] = set()
        stack: list[Value] = [self]
        while stack:
            owner = stack.pop(0)
            if isinstance(owner, Class) and id(owner) not in seen:
                seen.add(id(owner))
                yield owner
                stack[:0] = owner.bases

    def is_a(self, *names: str) -> bool:
        """Whether one of its bases is a thing of another package with one of these names."""
        return any(
            isinstance(base, Opaque) and base.words in names
            for owner in self.line()
            for base in owner.bases
        )


@dataclass(eq=False, slots=True)
class Instance:
    """What calling a class, or a factory of namespaces, makes."""

    kind: Value
    names: Namespace = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Module:
    """A module of the repository; names are found when they are asked for."""

    path: str
    names: Namespace = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    """Modules of other packages from which all names are taken."""
    find: Callable[[str], Value] | None = None
    """Looks up a name of a module that is not followed as a whole; raises KeyError."""


@dataclass(eq=False, slots=True)
class Partial:
    """A function with some arguments already given."""

    function: Value
    args: tuple[Value, ...]
    kwargs: Mapping[str, Value]


@dataclass(eq=False, slots=True)
class BoundMethod:
    """A method of a value that is not an instance of a class with a text."""

    owner: Value
    name: str


@dataclass(eq=False, slots=True)
class Context:
    """What a call makes that a `with` statement or a decorator gives its meaning.

    Attributes:
        kind: `generator`, `raises`, `swallows`, `patch`, `fixture`, `settings`, `wraps`, `value`.
        payload: what it was called with, by kind.
    """

    kind: str
    payload: Value = None


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark of pytest, as a decorator, in `pytestmark` or on one set of parameters."""

    name: str
    args: tuple[Value, ...] = ()
    kwargs: tuple[tuple[str, Value], ...] = ()

    def option(self, name: str, position: int, default: Value = None) -> Value:
        """An argument by keyword or position."""
        if position < len(self.args):
            return self.args[position]
        return dict(self.kwargs).get(name, default)


@dataclass(frozen=True, slots=True)
class Param:
    """`pytest.param(...)`: values of one set with an id and marks of its own."""

    values: tuple[Value, ...]
    id: Value = None
    marks: tuple[Value, ...] = ()


def words(value: Value) -> str:
    """Canonical words for a value: equal for equal values, whatever names were used."""
    return shorten(_words(value, 4))


def shorten(text: str) -> str:
    """A text within the limit on words."""
    if len(text) <= WORDS_LIMIT:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{text[: WORDS_LIMIT // 2]}…{digest}"


def _words(value: Value, depth: int) -> str:  # noqa: C901, PLR0911
    depth = max(depth, 0)
    match value:
        case Opaque():
            return value.words
        case Claim():
            return value.text
        case Either():
            options = (f"{label}: {_words(item, depth - 1)}" for label, item in value.options[:8])
            return shorten(f"either({', '.join(options)})")
        case Function() | Class():
            return value.name
        case Instance():
            if not depth:
                return "…"
            parts = list(value.names.items())[:16]
            inner = ", ".join(f"{name}={_words(v, depth - 2)}" for name, v in parts)
            return shorten(f"{_words(value.kind, depth - 1)}({inner})")
        case Module():
            return value.path.removesuffix(".py").replace("/", ".")
        case Partial():
            return f"partial({_words(value.function, depth - 1)})" if depth else "…"
        case BoundMethod():
            return f"{_words(value.owner, depth - 1)}.{value.name}" if depth else "…"
        case Context():
            return f"<{value.kind}>"
        case Mark() | Param():
            return type(value).__name__ + str(getattr(value, "name", ""))
        case _:
            return _container_words(value, depth)


def _container_words(value: Value, depth: int) -> str:
    if not isinstance(value, list | tuple | set | frozenset | dict):
        return repr(value)[: WORDS_LIMIT * 2]
    if not depth:
        return "…"
    if isinstance(value, dict):
        pairs = list(value.items())[:SHOWN_ITEMS]
        inner = [f"{_words(k, depth - 1)}: {_words(v, depth - 1)}" for k, v in pairs]
        return "{" + ", ".join(inner) + f"}}#{len(value)}"
    items = [_words(item, depth - 1) for item in list(value)[:SHOWN_ITEMS]]
    if isinstance(value, set | frozenset):
        items.sort()
    return f"{'(' if isinstance(value, tuple) else '['}{', '.join(items)}]#{len(value)}"


def is_known(value: Value, depth: int = 20) -> bool:
    """Whether the text tells the value as a whole, down to a depth."""
    match value:
        case None | bool() | int() | float() | complex() | str() | bytes() | range():
            return True
        case list() | tuple() | set() | frozenset():
            return depth > 0 and all(is_known(item, depth - 1) for item in value)
        case dict():
            return depth > 0 and all(is_known(item, depth - 1) for item in value.values())
        case _:
            return value is Ellipsis
