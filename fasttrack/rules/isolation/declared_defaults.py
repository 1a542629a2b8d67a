# SPDX-License-Identifier: Apache-2.0
"""Where a Python file says what an option is without any configuration, and what it says."""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fasttrack.rules.isolation.switch_files import spelled

UNDECIDED = "something that is computed"
"""A value that can not be told from the text."""
_READERS = frozenset(["get", "getenv", "setdefault", "pop"])
_FIELDS = frozenset(["Field", "field", "Option", "option", "Parameter", "attrib", "ib"])
_OPTIONS = frozenset(["add_argument", "option", "Option", "argument"])
_DEPTH = 6
"""Steps from a name to its value."""

Names = Callable[[str], "Scope | None"]
"""Dotted module to its names; None for one that is not in the repository."""


Said = tuple[str, ast.expr | None, int]
Follow = Callable[[ast.expr], str]
"""An expression to its value; `UNDECIDED` when that can not be told."""


def _unknown(_: ast.expr) -> str:
    return UNDECIDED


@dataclass(frozen=True)
class Declared:
    """One default.

    Attributes:
        place: where it is said, by names alone, so that both sides of a change can be compared.
        value: what it is; `UNDECIDED` when that can not be told.
        line: 1-based line.
    """

    place: str
    value: str
    line: int


class Scope:
    """The names that a module binds once, with what they are bound to."""

    def __init__(self, tree: ast.Module, module_of: Callable[[ast.ImportFrom], str]) -> None:
        """Reads the module's statements, not what is nested in functions."""
        self.values: dict[str, ast.expr] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self.imported: dict[str, tuple[str, str]] = {}
        for node in tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._bind(name, value)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    self._bind(name, value)
                case ast.ClassDef(name=name):
                    self.classes[name] = node
                case ast.ImportFrom():
                    for alias in node.names:
                        self.imported[alias.asname or alias.name] = (module_of(node), alias.name)

    def _bind(self, name: str, value: ast.expr) -> None:
        # Bound twice: nobody can tell which one holds.
        self.values[name] = ast.Name(UNDECIDED) if name in self.values else value


def declared(
    tree: ast.Module, option: str, scope: Scope, names: Names, carried: Follow = _unknown
) -> Iterator[Declared]:
    """The defaults of an option in a file.

    Args:
        tree: the file.
        option: name of the option, in any spelling.
        scope: the file's own names.
        names: the names of other modules.
        carried: says what an expression is that these names do not tell.
    """
    wanted = spelled(option)

    def told(place: str, value: ast.expr | None, line: int) -> Declared:
        found = resolved(value, scope, names)
        if found == UNDECIDED and value is not None:
            found = carried(value)
        return Declared(place, found, line)

    for node, above in _with_places(tree):
        for place, value, line in _said(node, above, wanted):
            yield told(above + place, value, line)


def _said(node: ast.AST, above: str, wanted: str) -> Iterator[Said]:
    """What one node says of the option: where, the expression, and the line."""
    match node:
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from _of_definition(node, wanted)
        case ast.Call():
            for place, given in _of_call(node, wanted):
                yield place, given, node.lineno
        case ast.BoolOp(op=ast.Or(), values=[*first, last]):
            if any(isinstance(v, ast.Call) and _reads(v, wanted) for v in first):
                yield "or", last, node.lineno
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
        ):
            if not above and _is_constant(name, wanted):
                yield name, value, node.lineno


def _of_definition(
    node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, wanted: str
) -> Iterator[Said]:
    """Fields of a class, parameters of a function."""
    if isinstance(node, ast.ClassDef):
        for name, value, line in _fields(node):
            if spelled(name) == wanted:
                yield f"{node.name}.{name}", _of_field(value), line
        return
    for name, default in _parameters(node.args):
        if spelled(name) == wanted:
            yield f"{node.name}({name})", default, default.lineno


def resolved(value: ast.expr | None, scope: Scope, names: Names, depth: int = _DEPTH) -> str:
    """The value of an expression, as it would be configured; bounded in how far it looks."""
    found, less = UNDECIDED, depth - 1
    match value if depth > 0 else ast.Name(UNDECIDED):
        case None:
            found = "None"
        case ast.Constant(value=bool() | str() | int() | float() | None as constant):
            found = str(constant)
        case ast.Name(id=name):
            found = _of_name(name, scope, names, less)
        case ast.Attribute(value=inner, attr="value" | "name"):
            found = resolved(inner, scope, names, less)
        case ast.Attribute(value=ast.Name(id=kind), attr=member):
            found = _of_member(kind, member, scope, names, less)
        case ast.Call(func=ast.Name(id=kind), args=[only], keywords=[]) if (
            kind == "str" or kind[:1].isupper()  # or a member of an enum, by its value
        ):
            found = resolved(only, scope, names, less)
        case ast.IfExp(body=body, orelse=orelse):
            one, other = (resolved(arm, scope, names, less) for arm in (body, orelse))
            found = one if one == other else UNDECIDED
    return found


def _of_name(name: str, scope: Scope, names: Names, depth: int) -> str:
    if name in scope.values:
        return resolved(scope.values[name], scope, names, depth)
    other, there = _elsewhere(name, scope, names) if depth > 0 else (None, "")
    return resolved(ast.Name(there), other, names, depth) if other else UNDECIDED


def _of_member(kind: str, member: str, scope: Scope, names: Names, depth: int) -> str:
    """A member of a class; of one whose value is made elsewhere the member's own name."""
    if kind in scope.classes:
        for name, value, _ in _fields(scope.classes[kind]):
            if name == member:
                found = resolved(value, scope, names, depth)
                return spelled(member) if found == UNDECIDED else found
        return UNDECIDED
    other, there = _elsewhere(kind, scope, names)
    if other is not None:
        return _of_member(there, member, other, names, depth - 1) if depth > 0 else UNDECIDED
    return UNDECIDED


def _elsewhere(name: str, scope: Scope, names: Names) -> tuple[Scope | None, str]:
    module, there = scope.imported.get(name, ("", ""))
    return (names(module) if module else None), there


def _with_places(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Every node with the dotted name of what it stands in, on an explicit stack."""
    stack: list[tuple[ast.AST, str]] = [(tree, "")]
    while stack:
        node, above = stack.pop()
        yield node, above
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            above = f"{above}{node.name}."
        stack += [(child, above) for child in ast.iter_child_nodes(node)]


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr, int]]:
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value, statement.lineno
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value, statement.lineno


def _of_field(value: ast.expr) -> ast.expr | None:
    """The default in `Field(default=...)` and the like; any other value itself."""
    if not (isinstance(value, ast.Call) and _name_of(value) in _FIELDS):
        return value
    given = _keywords(value)
    factory = given.get("default_factory", given.get("factory"))
    if isinstance(factory, ast.Lambda):
        return factory.body
    return given.get("default", factory or (value.args[0] if value.args else None))


def _parameters(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    placed = [*arguments.posonlyargs, *arguments.args]
    for argument, value in zip(reversed(placed), reversed(arguments.defaults), strict=False):
        yield argument.arg, value
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            yield argument.arg, default


def _of_call(node: ast.Call, wanted: str) -> Iterator[tuple[str, ast.expr | None]]:
    name, given = _name_of(node), _keywords(node)
    if name in _OPTIONS and any(spelled(text) == wanted for text in _texts(node.args, "-")):
        first = node.args[0] if node.args and not _texts(node.args[:1], "-") else None
        yield f"{name} --{wanted}", given.get("default", first)
    elif name == "set_defaults":
        for keyword, value in given.items():
            if spelled(keyword) == wanted:
                yield f"{name} {keyword}", value
    elif _reads(node, wanted):
        rest = node.args[2:] if name == "getattr" else node.args[1:]
        if rest or "default" in given:
            yield f"{name} {wanted}", rest[0] if rest else given["default"]


def _reads(node: ast.Call, wanted: str) -> bool:
    """Whether a call looks the option up by its name, in the environment or in a mapping."""
    name = _name_of(node)
    keys = node.args[1:2] if name == "getattr" else node.args[:1]
    known = name in _READERS or name == "getattr"
    return known and any(
        spelled(text) == wanted or spelled(text).endswith(f"_{wanted}") for text in _texts(keys, "")
    )


def _is_constant(name: str, wanted: str) -> bool:
    return spelled(name) in {wanted, f"default_{wanted}", f"{wanted}_default"}


def _name_of(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _keywords(node: ast.Call) -> Mapping[str, ast.expr]:
    return {k.arg: k.value for k in node.keywords if k.arg}


def _texts(nodes: Sequence[ast.expr], start: str) -> list[str]:
    return [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.startswith(start)
    ]
