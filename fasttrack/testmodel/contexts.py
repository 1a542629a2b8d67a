# SPDX-License-Identifier: Apache-2.0
"""What the body of a `with` statement runs in."""

import ast
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from fasttrack.testmodel import calling
from fasttrack.testmodel.events import Replaced
from fasttrack.testmodel.strength import RELATION, VALUE
from fasttrack.testmodel.values import (
    Claim,
    Class,
    Context,
    Function,
    Instance,
    Scope,
    Value,
    words,
)

if TYPE_CHECKING:
    from fasttrack.testmodel.follower import Follower

_SWALLOWS = "inside a `with` that catches its failure"


def enter(
    f: "Follower", manager: Value, inside: Callable[[Value], None], node: ast.expr, scope: Scope
) -> None:
    """Follows `inside` with what the manager hands to the body.

    Args:
        f: who follows.
        manager: the value of the `with` item.
        inside: follows the rest; takes what `as` binds.
        node: the item's expression.
        scope: where it stands.
    """
    match manager:
        case Context(kind="generator"):
            function, args, kwargs = manager.payload
            calling.resumed(f, function, args, kwargs, inside, node, scope)
        case Context(kind="swallows"):
            with f.trace.dying(_SWALLOWS):
                inside(None)
        case Context(kind="raises"):
            _raising(f, manager, inside, node, scope)
        case Context(kind="patch"):
            replace(f, manager, node, scope)
            inside(manager)
        case Context(kind="value"):
            inside(manager.payload)
        case Instance(kind=Class()):
            _entered(f, manager, inside, node, scope)
        case _:
            inside(manager)


def _raising(
    f: "Follower", manager: Context, inside: Callable[[Value], None], node: ast.expr, scope: Scope
) -> None:
    """`pytest.raises`: itself an assertion; one on failing assertions turns them around."""
    kinds, catches = manager.payload
    f.check(Claim("raises", f"raises {kinds}", RELATION if catches else VALUE), node, scope)
    with f.trace.dying("inside a block that must fail" if catches else ""):
        inside(manager)


def _entered(
    f: "Follower", manager: Instance, inside: Callable[[Value], None], node: ast.expr, scope: Scope
) -> None:
    kind = manager.kind
    there, entering = kind.find("__enter__")
    value: Value = manager
    if there and isinstance(entering, Function):
        value = calling.call(f, f_bound(entering, manager), [], {}, node, scope)
    there, leaving = kind.find("__exit__")
    swallows = there and isinstance(leaving, Function) and _returns_true(leaving.node)
    with ExitStack() as stack:
        stack.enter_context(f.trace.dying(_SWALLOWS if swallows else ""))
        inside(value)
    if there and isinstance(leaving, Function):
        calling.call(f, f_bound(leaving, manager), [None, None, None], {}, node, scope)


def f_bound(function: Function, owner: Instance) -> Function:
    """A method bound to its instance."""
    return Function(
        function.node, function.scope, function.defaults, owner, is_bound=True,
        attributes=function.attributes,
    )  # fmt: skip


def _returns_true(node: ast.AST) -> bool:
    """Whether an `__exit__` may say that an exception is dealt with."""
    returned = [n.value for n in ast.walk(node) if isinstance(n, ast.Return) and n.value]
    return any(not (isinstance(value, ast.Constant) and not value.value) for value in returned)


def replace(f: "Follower", patch: Context, node: ast.AST, scope: Scope) -> None:
    """Notes what a patch replaces, and lets later uses of its name see the new thing."""
    target, value = patch.payload
    text = target if isinstance(target, str) else words(target)
    f.trace.replaced.append(Replaced(text, "patched", f.place(node, scope)))
    if value is not None:
        f.overrides[text] = value
