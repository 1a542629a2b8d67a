# SPDX-License-Identifier: Apache-2.0
"""Whether an edited test module only gains tests, so that every test it had judges as before.

The texts are compared statement by statement. What comes in addition must be a test that can not
stand in for something that was there: its name is nowhere in the old text, importing it runs
nothing but marks, and its body changes nothing outside itself in a way that syntax shows. What the
functions that it calls do is not seen, as for a test in a new file.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from fasttrack.rules.confinement.symbol_lines import parsed

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Definition = _Function | ast.ClassDef
_PLAIN = (
    *(ast.Constant, ast.Name, ast.Attribute, ast.Tuple, ast.List, ast.Dict, ast.keyword),
    *(ast.UnaryOp, ast.BinOp, ast.unaryop, ast.operator, ast.expr_context),
)
"""Syntax that, evaluated when a module is imported, calls nothing and binds nothing."""
_REACHING_NAMES = frozenset(
    {"globals", "vars", "setattr", "delattr", "exec", "eval", "compile", "__import__"}
)
_REACHING_ATTRIBUTES = frozenset({"modules", "environ"})


def only_gains_tests(old: str, new: str) -> bool:
    """Whether `new` is `old` with new tests between its top-level statements.

    An import may also take more names from the module that it takes names from already.

    Raises:
        FactUnavailable: one of them does not parse, or its lines can not be counted.
    """
    before, after = _statements(old), _statements(new)
    words = frozenset(re.findall(r"\w+", old))
    marks = frozenset(mark for _, node in before for mark in _named_marks(node))
    matched = 0
    for text, node in after:
        there = before[matched] if matched < len(before) else None
        if there and (text == there[0] or _takes_more(there[1], node, words)):
            matched += 1
        elif not _is_new_test(node, words, marks):
            return False
    return matched == len(before)


def _statements(source: str) -> Sequence[tuple[str, ast.stmt]]:
    """The top-level statements, each with its lines; between them are blanks and comments."""
    rows = source.removeprefix("\ufeff").split("\n")
    return [(_text(node, rows), node) for node in parsed(source).body]


def _text(node: ast.stmt, rows: Sequence[str]) -> str:
    decorators = node.decorator_list if isinstance(node, _Definition) else []
    first = min([node.lineno, *(d.lineno for d in decorators)])
    return "\n".join(rows[first - 1 : node.end_lineno])


def _named_marks(node: ast.stmt) -> Iterator[str]:
    """Plain names that decorate a test: what marks one may mark another."""
    if isinstance(node, _Definition) and _is_test_name(node):
        yield from (d.id for d in node.decorator_list if isinstance(d, ast.Name))


def _is_test_name(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    return node.name.startswith("Test" if isinstance(node, ast.ClassDef) else "test_")


def _takes_more(old: ast.stmt, new: ast.stmt, words: frozenset[str]) -> bool:
    """Whether an import takes what it took, and names that the old text does not hold.

    What is called like a test may be a module that skips whoever imports it.
    """
    if not isinstance(old, ast.ImportFrom) or not isinstance(new, ast.ImportFrom):
        return False
    taken, takes = ({(a.name, a.asname) for a in node.names} for node in (old, new))
    added = takes - taken
    return (
        (old.module, old.level) == (new.module, new.level)
        and taken <= takes
        and all(name != "*" and "test" not in name for name, _ in added)
        and all((bound or name) not in words for name, bound in added)
    )


def _is_new_test(node: ast.stmt, words: frozenset[str], marks: frozenset[str]) -> bool:
    if not isinstance(node, _Definition) or not _is_test_name(node) or node.name in words:
        return False
    decorators = [
        d for d in node.decorator_list if not isinstance(d, ast.Name) or d.id not in marks
    ]
    evaluated = [*decorators, *_evaluated(node)]
    own = _own_objects(node)
    return (
        all(_pytest_name(_callee(decorator), "mark") for decorator in decorators)
        and all(_is_inert(part) for expression in evaluated for part in ast.walk(expression))
        and not any(_reaches_out(part, own) for part in ast.walk(node))
    )


def _evaluated(node: ast.stmt) -> Iterator[ast.AST]:
    """What importing a definition evaluates, its own decorators apart."""
    if isinstance(node, _Function):
        arguments = node.args
        yield from (*arguments.defaults, *(d for d in arguments.kw_defaults if d))
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        starred = (arg for arg in (arguments.vararg, arguments.kwarg) if arg)
        yield from (arg.annotation for arg in (*every, *starred) if arg.annotation)
        if node.returns:
            yield node.returns
    elif isinstance(node, ast.ClassDef):
        yield from (*node.bases, *node.keywords)
        for inner in node.body:
            if isinstance(inner, _Function):
                yield from (*inner.decorator_list, *_evaluated(inner))
            else:
                yield inner.value if isinstance(inner, ast.Expr) else inner


def _is_inert(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return _pytest_name(node.func, "mark") or _pytest_name(node.func, "param")
    return isinstance(node, _PLAIN)


def _callee(decorator: ast.expr) -> ast.expr:
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def _pytest_name(node: ast.expr, first: str) -> bool:
    """Whether an expression is `pytest.<first>` or a name below it."""
    while isinstance(node, ast.Attribute):
        if node.attr == first and isinstance(node.value, ast.Name) and node.value.id == "pytest":
            return True
        node = node.value
    return False


def _own_objects(node: ast.stmt) -> frozenset[str]:
    """Names that a test binds to nothing but what a class made for it, and `self`."""
    bound: Counter[str] = Counter()
    made: Counter[str] = Counter()
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            bound[part.id] += 1
        elif isinstance(part, ast.arg) and part.arg != "self":
            bound[part.arg] += 1
        elif isinstance(part, ast.alias):
            bound[part.asname or part.name.partition(".")[0]] += 1
        elif isinstance(part, ast.Assign) and _calls_a_class(part.value):
            made.update(target.id for target in part.targets if isinstance(target, ast.Name))
    own = {name for name in made if made[name] == bound[name]}
    return frozenset(own if bound["self"] else own | {"self"})


def _calls_a_class(node: ast.expr) -> bool:
    """Whether an expression calls something that is spelled like a class."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name[:1].isupper()
        case _:
            return False


def _reaches_out(node: ast.AST, own: frozenset[str]) -> bool:
    """Whether a piece of syntax binds or changes something that other tests may use."""
    match node:
        case ast.Global():
            return True
        case ast.Name(id=name):
            return name in _REACHING_NAMES
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in own:
            return name.startswith("__")
        case ast.Attribute(attr=name, ctx=context):
            hidden = name.startswith("__") or name in _REACHING_ATTRIBUTES
            return hidden or not isinstance(context, ast.Load)
        case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
            while isinstance(value, ast.Subscript):
                value = value.value
            return not isinstance(value, ast.Name)
        case _:
            return False
