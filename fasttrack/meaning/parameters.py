# SPDX-License-Identifier: Apache-2.0
"""What a call hands over: to which parameters, and whether it is worth following."""

from fasttrack.meaning.values import (
    Foreign,
    Function,
    Holder,
    Items,
    Made,
    OwnObject,
    Text,
    Values,
)


def receiver(function: Function) -> tuple[Values, ...]:
    """What the first parameter of a method is, when it is read for its own sake."""
    owner = function.owner
    if owner is None or owner.instance is None or function.kind == "staticmethod":
        return ()
    return ((owner,),) if function.kind == "classmethod" else ((owner.instance,),)


def tells(values: Values, depth: int = 0) -> bool:
    """Whether some values hold something that a call could reach into or call."""
    for value in values:
        if isinstance(value, Items | OwnObject) and depth < 3:
            inner = value.values if isinstance(value, Items) else value.attributes.values()
            if any(tells(held, depth + 1) for held in inner):
                return True
        elif not isinstance(value, Text | Made | Items | OwnObject):
            return True
    return False


def foreign_names(handed: tuple[Values, ...], depth: int = 0) -> tuple[str, ...]:
    """Names of the foreign objects that a call hands over."""
    names: list[str] = []
    for values in handed if depth < 3 else ():
        for value in values:
            if isinstance(value, Foreign):
                names.append(value.name)
            elif isinstance(value, Holder):
                names += foreign_names(tuple(value.held), depth + 1)
            elif isinstance(value, Items):
                names += foreign_names(tuple(value.values), depth + 1)
            elif isinstance(value, OwnObject):
                names += foreign_names(tuple(value.attributes.values()), depth + 1)
    return tuple(names)


def bound_to(
    function: Function, given: tuple[Values, ...], named: dict[str, Values]
) -> dict[str, Values]:
    """Parameters to what a call hands over."""
    arguments = function.node.args
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    names = {*positional, *(a.arg for a in arguments.kwonlyargs)}
    bound = dict(function.defaults)
    bound.update(zip(positional, given, strict=False))
    bound.update((name, values) for name, values in named.items() if name in names)
    if arguments.vararg is not None:
        bound[arguments.vararg.arg] = (Items(list(given[len(positional) :])),)
    if arguments.kwarg is not None:
        rest = {name: values for name, values in named.items() if name not in names}
        bound[arguments.kwarg.arg] = (Items(list(rest.values()), list(rest)),)
    return bound
