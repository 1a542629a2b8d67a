# SPDX-License-Identifier: Apache-2.0
"""What a Python source file imports, without running it and whatever it holds."""

import ast
import gc
import hashlib
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from fasttrack.errors import FactUnavailable

SOURCE_LIMIT = 1024 * 1024
"""Characters of a source file that is parsed."""

WORDS_LIMIT = 250_000
"""Words and signs of a source file that is parsed, about 20,000 lines: a syntax tree takes up to
1 kB for each."""

_WORD = re.compile(r"\w+|[^\w\s]")
_LOOP = ("body", "orelse")
_TRY = ("body", "handlers", "orelse", "finalbody")
_BLOCKS: Mapping[type[ast.AST], tuple[str, ...]] = {
    ast.Import: (), ast.ImportFrom: (), ast.Module: ("body",), ast.FunctionDef: ("body",),
    ast.AsyncFunctionDef: ("body",), ast.ClassDef: ("body",), ast.If: _LOOP, ast.For: _LOOP,
    ast.AsyncFor: _LOOP, ast.While: _LOOP, ast.With: ("body",), ast.AsyncWith: ("body",),
    ast.Try: _TRY, ast.TryStar: _TRY, ast.ExceptHandler: ("body",), ast.Match: ("cases",),
    ast.match_case: ("body",),
}  # fmt: skip
"""Nodes that import or hold statements, to the fields that hold them; most are neither."""
_KNOWN_TEXTS = 1024
"""Texts whose imports are remembered, because rules and evidence ask for the same ones."""
_KNOWN_IMPORTS = 64
"""Imports of a text that is remembered; with more, hostile ones would fill the memory."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_IMPORTS = (ast.Import, ast.ImportFrom, ast.Call)
_IMPORTERS = ("import_module", "__import__")
_TYPING_MODULES = ("typing", "typing_extensions")


@dataclass(frozen=True)
class Import:
    """One imported module.

    Attributes:
        module: dotted name as written; empty for `from . import x`.
        level: leading dots of a relative import; 0 for an absolute one.
        names: names taken from it (`*` for all); empty for a plain `import`.
        line: 1-based line.
        type_checking: only type checkers see it: it stands under `if TYPE_CHECKING:`.
        inside_function: it runs when a function is called, not when the module is imported.
    """

    module: str
    level: int
    names: tuple[str, ...]
    line: int
    type_checking: bool
    inside_function: bool


def imports_of(source: str) -> tuple[Import, ...]:
    """All imports of a source text, in the order of its lines.

    Besides the statements: `importlib.import_module("x")` and `__import__("x")` with a literal
    name, under whatever name they are called by. A name that is computed is not seen.

    `TYPE_CHECKING` counts only when the text takes it from `typing` and binds it nowhere else;
    otherwise a file could hide what it imports behind its own constant of that name.

    Raises:
        FactUnavailable: it does not parse, or is too large or too deeply nested to parse.
    """
    name = hashlib.sha256(source.encode("utf-8", "surrogatepass")).digest()
    known = _known.get(name)
    if known is not None:
        return known
    tree = parse(source)
    calls = any(name in source for name in _IMPORTERS)
    guards = _type_checking_names(tree) if "TYPE_CHECKING" in source else frozenset()
    found = tuple(sorted(_walk(tree, calls, guards), key=lambda found: found.line))
    if len(found) <= _KNOWN_IMPORTS and len(_known) < _KNOWN_TEXTS:
        _known[name] = found
    return found


_known: dict[bytes, tuple[Import, ...]] = {}
"""SHA-256 of a text to what it imports."""


def parse(source: str) -> ast.Module:
    """The syntax tree of a text, within bounds on its size and depth.

    Raises:
        FactUnavailable: it does not parse, or is too large or too deeply nested to parse.
    """
    check_size(source)
    if len(source) > WORDS_LIMIT:
        words = sum(1 for _ in _WORD.finditer(source))
        if words > WORDS_LIMIT:
            raise FactUnavailable(
                f"the source has {words:,} words and signs; at most {WORDS_LIMIT:,} are parsed"
            )
    try:
        with warnings.catch_warnings(), uncollected():
            warnings.simplefilter("ignore")  # invalid escapes and the like are not our business
            return ast.parse(source)
    except SyntaxError as error:
        raise FactUnavailable(f"not Python: {error.msg}, line {error.lineno}") from error
    except (RecursionError, MemoryError) as error:
        raise FactUnavailable("the source is nested too deeply to parse") from error
    except ValueError as error:  # NUL characters, lone surrogates, enormous numbers
        raise FactUnavailable(f"not Python: {error}") from error


def check_size(source: str) -> None:
    """Raises FactUnavailable for a text with more characters than are parsed."""
    if len(source) > SOURCE_LIMIT:
        raise FactUnavailable(
            f"the source has {len(source):,} characters; at most {SOURCE_LIMIT:,} are parsed"
        )


@contextmanager
def uncollected() -> Iterator[None]:
    """While nobody looks for cyclic garbage: syntax trees hold none, and looking walks them all."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _walk(tree: ast.Module, calls: bool, guards: frozenset[str]) -> Iterator[Import]:
    """Visit with an own stack: a tree may be deeper than Python's."""
    stack: list[tuple[ast.AST, bool, bool]] = [(tree, False, False)]
    while stack:
        node, checking, inside = stack.pop()
        if isinstance(node, _IMPORTS):
            yield from _at(node, checking, inside)
        inside = inside or isinstance(node, _FUNCTIONS)
        only_checked = _checked_only(node, guards)
        for child in reversed(_children(node, calls)):
            stack.append((child, checking or child in only_checked, inside))


def _children(node: ast.AST, calls: bool) -> list[ast.AST]:
    """The nodes below, in order; where no call can import, only those that hold statements."""
    if calls:
        return list(ast.iter_child_nodes(node))
    held: list[ast.AST] = []
    for block in _BLOCKS[node.__class__]:
        held += [child for child in getattr(node, block) if child.__class__ in _BLOCKS]
    return held


def _at(node: ast.AST, checking: bool, inside: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(alias.name, 0, (), node.lineno, checking, inside)
    elif isinstance(node, ast.ImportFrom):
        names = tuple(alias.name for alias in node.names)
        yield Import(node.module or "", node.level, names, node.lineno, checking, inside)
    elif isinstance(node, ast.Call) and _callee(node) in _IMPORTERS:
        name = _literal(node, 0, "name")
        if name:
            module = name.lstrip(".")
            level = len(name) - len(module)
            package = _literal(node, 1, "package")
            if level and package and _callee(node) == "import_module":
                module, level = _absolute(module, level, package), 0
            yield Import(module, level, (), node.lineno, checking, inside)


def _callee(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _literal(call: ast.Call, position: int, keyword: str) -> str:
    values = call.args[position : position + 1] or [
        argument.value for argument in call.keywords if argument.arg == keyword
    ]
    if values and isinstance(values[0], ast.Constant) and isinstance(values[0].value, str):
        return values[0].value
    return ""


def _absolute(module: str, level: int, package: str) -> str:
    parents = package.split(".")
    return ".".join([*parents[: len(parents) - level + 1], *filter(None, [module])])


def _checked_only(node: ast.AST, guards: frozenset[str]) -> list[ast.stmt]:
    """The children of an `if` that never run."""
    if not isinstance(node, ast.If) or not guards:
        return []
    if _dotted(node.test) in guards:
        return node.body
    if isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not):
        return node.orelse if _dotted(node.test.operand) in guards else []
    return []


def _dotted(node: ast.expr) -> str:
    """`name` or `name.attribute` as text; empty for anything longer."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _type_checking_names(tree: ast.Module) -> frozenset[str]:
    """Expressions of the text that are `typing.TYPE_CHECKING` for certain."""
    constants: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    bound: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in _TYPING_MODULES and not node.level:
            constants.update(_names(node, ("TYPE_CHECKING",)))
        elif isinstance(node, ast.Import):
            modules.update(_names(node, _TYPING_MODULES))
        elif _reaches_for_constant(node):
            return frozenset()
        bound.update(_bound_by(node))
    if "*" in bound:
        return frozenset()
    return frozenset(
        [name for name in constants if bound[name] == constants[name]]
        + [f"{name}.TYPE_CHECKING" for name in modules if bound[name] == modules[name]]
    )


def _names(node: ast.Import | ast.ImportFrom, wanted: tuple[str, ...]) -> list[str]:
    """Names under which a statement binds what is wanted of it."""
    return [alias.asname or alias.name for alias in node.names if alias.name in wanted]


def _reaches_for_constant(node: ast.AST) -> bool:
    """Whether code could set the constant in another way: an attribute, or its name as text."""
    if isinstance(node, ast.Attribute):
        return node.attr == "TYPE_CHECKING" and not isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.Constant) and node.value == "TYPE_CHECKING"


def _bound_by(node: ast.AST) -> tuple[str, ...]:
    """Names that a node binds in whatever scope."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            return (name,)
        case ast.alias(name=name, asname=None):
            return (name.partition(".")[0],)
        case ast.alias(asname=str(name)):
            return (name,)
        case (
            ast.FunctionDef(name=name)
            | ast.AsyncFunctionDef(name=name)
            | ast.ClassDef(name=name)
            | ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
            | ast.MatchMapping(rest=str(name))
        ):
            return (name,)
        case _:
            return ()
