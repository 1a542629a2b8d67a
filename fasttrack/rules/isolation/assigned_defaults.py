# SPDX-License-Identifier: Apache-2.0
"""Where code turns a path on that nobody has asked for, after the option got its default.

`declared_defaults` reads what an option is declared with. Here are the ways in which code gives it
another value all the same: when an object is made, by the defaults of a function, by a property, by
a wrapper that hands the option over, and by a table in which one value stands for another.
"""

import ast
from collections.abc import Iterator

from fasttrack.manifest.model import Switch
from fasttrack.rules.isolation.declared_defaults import Declared
from fasttrack.rules.isolation.switch_files import spelled
from fasttrack.rules.isolation.switched import identifier

_MAKERS = frozenset({"__init__", "__post_init__", "__attrs_post_init__", "model_post_init"})
"""Methods that run whenever an object is made."""
_DEFAULTS = frozenset({"__defaults__", "__kwdefaults__"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def assigned(tree: ast.Module, switch: Switch) -> Iterator[Declared]:
    """The places of a file in which the option becomes the path's value by itself.

    Args:
        tree: the file.
        switch: the option, its default, and the value that turns the path on.
    """
    option, value, default = map(spelled, (switch.option, switch.value, switch.default))
    stack: list[tuple[ast.AST, str, bool]] = [(tree, "", False)]
    while stack:
        node, above, by_default = stack.pop()
        freely = by_default or not above or above.split(".")[-2] in _MAKERS
        for place, given in (*_set(node, option, freely=freely), *_given(node, option)):
            if _word(given) == value:
                yield Declared(f"{above}{place}", switch.value, given.lineno)
        if _maps(node, option, default, value):
            yield Declared(f"{above}{{{default}}}", switch.value, getattr(node, "lineno", 0))
        if isinstance(node, _Function | ast.ClassDef):
            above = f"{above}{node.name}."
        asks = isinstance(node, ast.If) and _asks(node.test, option, default)
        for child in ast.iter_child_nodes(node):
            inside = asks and child in getattr(node, "body", ())
            stack.append((child, above, by_default or inside))


def _set(node: ast.AST, option: str, *, freely: bool) -> Iterator[tuple[str, ast.expr]]:
    """What an assignment gives the option, where nobody was asked: where, and the expression."""
    if not freely:
        return
    match node:
        case ast.Assign(targets=[ast.Attribute(attr=name) | ast.Name(id=name)], value=value) if (
            spelled(name) == option
        ):
            yield f"{name} =", value
        case ast.Call(func=called, args=[*_, name_, value]) if _is_setter(called):
            if _word(name_) == option:
                yield f"setattr {option}", value
        case _:
            pass


def _given(node: ast.AST, option: str) -> Iterator[tuple[str, ast.expr]]:
    """What the defaults of a function, a wrapper or a property give the option."""
    match node:
        case ast.Assign(targets=[ast.Attribute(attr=name)], value=value) if name in _DEFAULTS:
            yield from _elements(value, option, name)
        case ast.Call(func=called, keywords=keywords):
            yield from _handed_over(keywords, identifier(called), option)
        case ast.FunctionDef(name=name, decorator_list=decorators):
            if spelled(name) == option and any(map(_is_property, decorators)):
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Return) and inner.value is not None:
                        yield f"{name}()", inner.value
        case _:
            pass


def _handed_over(
    keywords: list[ast.keyword], called: str, option: str
) -> Iterator[tuple[str, ast.expr]]:
    """What a wrapper puts in where its caller says nothing: `f(**{"option": x, **given})`."""
    for keyword in keywords:
        match keyword:
            case ast.keyword(arg=None, value=ast.Dict(keys=keys, values=values)):
                for key, value in zip(keys, values, strict=True):
                    if key is not None and _word(key) == option:
                        yield f"**{option}", value
            case ast.keyword(arg=str(name), value=value):
                if spelled(name) == option and called in {"partial", "partialmethod"}:
                    yield f"partial {option}", value
            case _:
                pass


def _elements(value: ast.expr, option: str, place: str) -> Iterator[tuple[str, ast.expr]]:
    match value:
        case ast.Tuple(elts=parts):
            yield from ((place, part) for part in parts)
        case ast.Dict(keys=keys, values=values):
            for key, part in zip(keys, values, strict=True):
                if key is not None and _word(key) == option:
                    yield place, part
        case _:
            pass


def _maps(node: ast.AST, option: str, default: str, value: str) -> bool:
    """Whether a table in which the option is looked up has the path's value for the default."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Dict() as table, attr="get"), args=[key, *_]):
            pass
        case ast.Subscript(value=ast.Dict() as table, slice=key):
            pass
        case _:
            return False
    if option not in {identifier(n) for n in ast.walk(key)}:
        return False
    pairs = zip(table.keys, table.values, strict=True)
    return any(k is not None and _word(k) == default and _word(v) == value for k, v in pairs)


def _asks(test: ast.expr, option: str, default: str) -> bool:
    """Whether a condition compares the option with its default, or asks whether it is set."""
    nodes = list(ast.walk(test))
    speaks = any(identifier(node) == option for node in nodes)
    unset = any(isinstance(n, ast.Is | ast.Not) or _word(n) == default for n in nodes)
    return speaks and unset


def _is_setter(called: ast.expr) -> bool:
    return identifier(called) in {"setattr", "__setattr__"}


def _is_property(decorator: ast.expr) -> bool:
    return identifier(decorator).endswith("property")


def _word(node: ast.AST) -> str | None:
    """A constant as an option would be spelled; a member of an enum by its name."""
    match node:
        case ast.Constant(value=str() | bool() | int() | None as value):
            return spelled(str(value))
        case ast.Attribute(attr=member) if member.isupper():
            return spelled(member)
        case _:
            return None
