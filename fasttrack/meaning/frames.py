# SPDX-License-Identifier: Apache-2.0
"""Where a reader is, and what it has found."""

import ast
from dataclasses import dataclass, field

from fasttrack.meaning.kinds import Kind
from fasttrack.meaning.scopes import Scope
from fasttrack.meaning.values import UNKNOWN, Foreign, Function, Values


@dataclass(frozen=True, slots=True)
class Followed:
    """A call that was followed into a function."""

    function: Function
    node: ast.AST


@dataclass(slots=True)
class Frame:
    """Where the reader is.

    Attributes:
        scope: names that are seen and bound.
        at_import: it runs when the module is imported.
        calls: how it came here, outermost call first.
        returned: what the function has returned so far.
        yielded: what it has yielded.
        branches: depth of branches, in which an assignment may or may not happen.
        restored: depth of context managers that put warnings back.
        entered: the call is one that a `with` statement enters and leaves again.
        sent: what a generator is sent.
        handed: in another file's function, the foreign objects that it was handed; what it does
            to others is that file's doing.
    """

    scope: Scope
    at_import: bool = True
    calls: tuple[Followed, ...] = ()
    returned: list[Values] = field(default_factory=list)
    yielded: list[Values] = field(default_factory=list)
    branches: int = 0
    restored: int = 0
    entered: bool = False
    sent: Values = UNKNOWN
    handed: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """One effect, before it is put into words.

    Attributes:
        kind: which rule it belongs to.
        target: what it acts on.
        through: by what, such as "set through `setattr`".
        node: where it stands.
        calls: the calls that led there.
        local: names that mean something in that function only.
        at_import: it happens when the module is imported.
    """

    kind: Kind
    target: Foreign
    through: str
    node: ast.AST
    calls: tuple[Followed, ...]
    local: frozenset[str]
    at_import: bool
