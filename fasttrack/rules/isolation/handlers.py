# SPDX-License-Identifier: Apache-2.0
"""Statements that take a failure of what they surround and go on, in the syntax of one file."""

import ast
import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass

ALL = frozenset(["Exception", "BaseException"])
NAMES = 8
"""Parts of a dotted name that are told."""
MANY = 3
"""Built-in types of one handler, `RuntimeError` among them, that take nearly every failure."""
_NO_CODE = frozenset(["", "logger", "_logger", "log", "LOGGER", "LOG"])
"""Beginnings of a call that lead to no code of the roots: a literal, a log."""
_BROAD = frozenset(
    [
        "RuntimeError", "ArithmeticError", "LookupError", "ValueError", "TypeError", "KeyError",
        "IndexError", "AttributeError", "AssertionError", "OSError", "MemoryError", "NameError",
        "SystemError", "BufferError",
    ]
)  # fmt: skip
_HANDLER = re.compile(r"except\b\s*\*?([^\n]*)")
_SUPPRESSING, _BLOCKS = ("suppress", ".exception"), ("finally", "__exit__", "__aexit__")
_SUPPRESSES = re.compile(r"suppress\s*\(|\.exception\s*\(\s*\)")
_BLOCK = re.compile(r"^([ \t]*)(?:finally\s*:|(?:async\s+)?def\s+__a?exit__\b)", re.MULTILINE)
"""The first line of a block in which a `return` may drop a failure."""
_LEAVING = re.compile(r"\b(?:return|break|continue)\b")
_ANSWERING = re.compile(r"\breturn[ \t]+(?!(?:None|False)\b)[^\s#]")
_NARROW = re.compile(r"(Error|Exit|Interrupt|Warning|Iteration)\Z")
"""Names of types that are not meant to take every failure."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Definition = _Function | ast.ClassDef
_Loop = ast.For | ast.AsyncFor | ast.While
_RAISES, _LEAVES, _FALLS = "raises", "leaves", "falls through"
GUARDED = ("the block that it guards",)
"""What a context manager surrounds."""


@dataclass(frozen=True)
class Blanket:
    """A statement that takes every failure of what it surrounds.

    Attributes:
        place: dotted name of the function that it is in.
        caught: what it catches, as written.
        calls: what it calls inside, as written.
        line: 1-based line.
    """

    place: str
    caught: str
    calls: tuple[str, ...]
    line: int


def is_possible(source: str) -> bool:
    """Whether a text may hold such a statement; most do not, and are not parsed for it."""
    if any(word in source for word in _SUPPRESSING) and _SUPPRESSES.search(source):
        return True
    blocks = _BLOCK.finditer(source) if any(word in source for word in _BLOCKS) else ()
    if any(_may_leave(source, block) for block in blocks):
        return True
    if "except" not in source:
        return False
    for match in _HANDLER.finditer(source):
        line = source.rfind("\n", 0, match.start()) + 1
        caught, colon, _ = match[1].partition(":")
        names = re.findall(r"[\w.]+", caught.partition(" as ")[0])
        handles = not source[line : match.start()].strip()
        if handles and (not colon or not names or not all(map(_NARROW.search, names))):
            return True
        if handles and _is_broad(names):
            return True
    return False


def _may_leave(source: str, head: re.Match[str]) -> bool:
    """Whether a `finally` has a way out, or an `__exit__` an answer, by the lines' indentation."""
    is_finally = "finally" in head[0]
    place = source.find("\n" if is_finally else ":\n", head.end())
    rest = source[head.end() : place] if is_finally and place >= 0 else ""
    inside = re.compile(rf"(?:[^\n]*\n(?={head[1]}[ \t]|[ \t]*\n))*[^\n]*")
    block = inside.match(source, place) if place >= 0 else None
    text = rest + (block[0] if block else source[head.end() :])
    return (_LEAVING if is_finally else _ANSWERING).search(text) is not None


def is_narrow(caught: ast.expr) -> bool:
    """Whether a type has a name that says it is not meant to take every failure."""
    return _NARROW.search(spoken(caught)) is not None


def is_all(node: ast.expr) -> bool:
    """Whether a type is the widest one, or a tuple takes so many that it is as good as that."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in ALL
        case ast.Tuple(elts=parts):
            return _is_broad([spoken(part) for part in parts])
        case ast.Starred(value=value):  # `*Exception.__subclasses__()`
            nodes = (n for n in ast.walk(value) if isinstance(n, ast.expr))
            return any(isinstance(n, ast.Name | ast.Attribute) and is_all(n) for n in nodes)
        case _:
            return False


def _is_broad(names: Sequence[str]) -> bool:
    broad = _BROAD.intersection(names)
    return "RuntimeError" in broad and len(broad) >= MANY


def blankets(
    tree: ast.Module, is_blanket: Callable[[ast.expr | None], bool], outside: Set[str]
) -> Iterator[Blanket]:
    """What a file has of such statements.

    Args:
        tree: the file.
        is_blanket: whether what a handler names takes every failure.
        outside: names that are no code of the repository.
    """
    stack: list[tuple[ast.AST, str, tuple[str, ...]]] = [(tree, "", ())]
    while stack:
        node, above, guarded = stack.pop()
        if isinstance(node, _Definition):
            above = f"{above}.{node.name}".lstrip(".")
            guarded = GUARDED if _is_manager(node) else ()
        place = above or "the module"
        if isinstance(node, ast.Try):
            calls = _calls(node.body, outside) or (guarded if _yields(node.body) else ())
            yield from _of_try(node, place, calls, is_blanket)
        elif isinstance(node, ast.With | ast.AsyncWith):
            calls = _calls(node.body, outside)
            for item in node.items:
                if calls and any(map(is_blanket, _suppressed(item.context_expr))):
                    yield Blanket(place, "`suppress`", calls, node.lineno)
        elif isinstance(node, _Function) and node.name in {"__exit__", "__aexit__"}:
            for line in _swallowing_returns(node):
                yield Blanket(place, f"`return` in `{node.name}`", GUARDED, line)
        elif isinstance(node, ast.If | ast.IfExp) and (asked := _failure_asked(node)):
            yield Blanket(place, "`.exception()`", (asked,), node.lineno)
        stack += [(child, above, guarded) for child in ast.iter_child_nodes(node)]


def _of_try(
    node: ast.Try,
    place: str,
    calls: tuple[str, ...],
    is_blanket: Callable[[ast.expr | None], bool],
) -> Iterator[Blanket]:
    for handler in node.handlers if calls else ():
        if goes_on(handler.body) and is_blanket(handler.type):
            caught = f"`except {spoken(handler.type)}`" if handler.type else "`except`"
            yield Blanket(place, caught, calls, handler.lineno)
    if calls and (line := _left_by(node.finalbody)):
        yield Blanket(place, "`finally` that leaves", calls, line)


def goes_on(body: Sequence[ast.stmt]) -> bool:
    """Whether some way through a block does not end in a `raise`."""
    return bool(_ways(body) - {_RAISES})


def _ways(body: Sequence[ast.stmt]) -> set[str]:
    """How a block may end: it raises, leaves its function or loop, or what follows it runs."""
    found: set[str] = set()
    for node in body:
        ways = {_FALLS}
        match node:
            case ast.Raise():
                ways = {_RAISES}
            case ast.Return() | ast.Continue() | ast.Break():
                ways = {_LEAVES}
            case ast.If(body=first, orelse=other):
                ways = _ways(first) | _ways(other)
            case ast.With(body=inner) | ast.AsyncWith(body=inner):
                ways = _ways(inner)
            case ast.Try(body=inner, handlers=handlers, finalbody=last):
                ways = _ways(inner).union(*(_ways(h.body) for h in handlers))
                after = _ways(last)
                ways = ways | after if _FALLS in after else after
            case _:
                pass
        found |= ways - {_FALLS}
        if _FALLS not in ways:
            return found
    return found | {_FALLS}


def _left_by(body: Sequence[ast.stmt]) -> int:
    """The line of what leaves a block itself and so drops a failure on its way; 0 if none."""
    stack = [(node, False) for node in body]
    while stack:
        node, in_loop = stack.pop()
        if isinstance(node, ast.Return) or (
            isinstance(node, ast.Break | ast.Continue) and not in_loop
        ):
            return node.lineno
        if not isinstance(node, _Definition):
            inside = in_loop or isinstance(node, _Loop)
            children = ast.iter_child_nodes(node)
            stack += [(child, inside) for child in children if isinstance(child, ast.stmt)]
            stack += [(n, inside) for h in getattr(node, "handlers", ()) for n in h.body]
    return 0


def _is_manager(node: ast.AST) -> bool:
    """Whether a function is made a context manager by its decorator."""
    decorators = node.decorator_list if isinstance(node, _Function) else []
    return any(spoken(d).endswith("contextmanager") for d in decorators)


def _yields(body: Sequence[ast.stmt]) -> bool:
    nodes = (node for statement in body for node in ast.walk(statement))
    return any(isinstance(node, ast.Yield) for node in nodes)


def _swallowing_returns(node: _Function) -> Iterator[int]:
    """Lines on which an `__exit__` says that whatever failed is dealt with."""
    given = {argument.arg for argument in node.args.args[1:]}
    for inner in ast.walk(node):
        match inner:
            case ast.Return(value=ast.Constant(value=value)) if value:
                yield inner.lineno
            case ast.Return(
                value=ast.Name(id=name)
                | ast.Call(func=ast.Name(id="bool"), args=[ast.Name(id=name)])
                | ast.Compare(
                    left=ast.Name(id=name),
                    ops=[ast.IsNot() | ast.NotEq()],
                    comparators=[ast.Constant(value=None)],
                )
            ) if name in given:
                yield inner.lineno
            case _:
                pass


def _failure_asked(node: ast.If | ast.IfExp) -> str:
    """The future whose failure decides, where what follows does not raise; empty if none."""
    for inner in ast.walk(node.test):
        match inner:
            case ast.Call(func=ast.Attribute(value=future, attr="exception"), args=[], keywords=[]):
                if isinstance(node, ast.IfExp) or (goes_on(node.body) and goes_on(node.orelse)):
                    return spoken(future)
            case _:
                pass
    return ""


def _suppressed(node: ast.expr) -> list[ast.expr]:
    """What a context manager of the name `suppress` takes."""
    match node:
        case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=caught):
            return caught
        case _:
            return []


def _calls(body: Sequence[ast.stmt], outside: Set[str]) -> tuple[str, ...]:
    """What a block calls of this repository's code and of torch's operators, by its names.

    What the block itself makes, such as an open file, is not told from where it came from.
    """
    nodes = [node for statement in body for node in ast.walk(statement)]
    made = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    names = [(spoken(call.func), _root(call.func)) for call in calls]
    other = outside | made | _NO_CODE
    return tuple(n for n, root in names if n.startswith("torch.ops.") or root not in other)


def _root(node: ast.expr) -> str:
    """The name that an expression begins with; empty for one that begins otherwise."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def spoken(node: ast.expr) -> str:
    """The dotted name of what is caught or called; what no name leads to is left out."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < NAMES:
        parts.append(node.attr)
        node = node.value
    match node:
        case ast.Name(id=name):
            parts.append(name)
        case ast.Tuple():
            parts.append("(...)")
        case _:
            parts.append("...")
    return ".".join(reversed(parts))
