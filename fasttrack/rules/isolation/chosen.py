# SPDX-License-Identifier: Apache-2.0
"""What a function uses where the switch of a path has a certain value.

Conditions, matches and tables on the switch are decided for that value, and what they cut off is
left out. So a condition may be written anew in any form: only what runs for whom is compared.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from fasttrack.rules.isolation.carried import Carried
from fasttrack.rules.isolation.reachable import reachable, truth
from fasttrack.rules.isolation.switch_files import spelled
from fasttrack.rules.isolation.switched import Code, Function, Words, has_word, identifier, is_used

OTHER = "*"
"""Stands for a value of the switch that nobody has written down."""
_TABLE_LIMIT = 64
_FALSE = frozenset({"", "none", "false"})
"""Values that do not count as true."""
_METHODS = frozenset({"lower", "strip", "casefold", "value"})
"""What leaves a value of the switch what it is."""


@dataclass(frozen=True)
class Uses:
    """What runs for one value of the switch.

    Attributes:
        things: what nodes use, by the name of what they stand for, and the first line of each.
        unsure: something asks for the switch in a way that is not decided here.
    """

    things: Mapping[str, int]
    unsure: bool


@dataclass(frozen=True)
class Chooser:
    """One side of a file, asked for what runs when.

    Attributes:
        code: its functions.
        words: how it speaks of the switch.
        carried: what its expressions stand for.
        path: where it is.
        tree: all of it.
    """

    code: Code
    words: Words
    carried: Carried
    path: str
    tree: ast.Module
    _tables: dict[str, ast.Dict] = field(default_factory=dict)

    def uses(self, name: str, value: str) -> Uses:
        """What a function may use where the switch has a value.

        Args:
            name: its dotted name.
            value: the value as `spelled`, or OTHER.
        """
        function = self.code.functions[name]
        decider = _Decider(self, value, function)
        nodes = list(self._nodes(function, decider))
        unsure = decider.unsure or any(map(decider.is_open, nodes))
        asking = _all_of(n for n in nodes if decider.is_option(n))
        used = things(self.carried, self.path, (n for n in nodes if n not in asking))
        return Uses(used, unsure)

    def _nodes(self, function: Function, decider: "_Decider") -> Iterator[ast.AST]:
        left_out: set[ast.AST] = set()
        for node in reachable(function.body, self.code.known, decider.decide):
            if node in left_out:
                continue
            match node:
                case ast.Dict() if decider.is_table(node):
                    left_out |= decider.cut_off(node)
                case ast.Match():
                    left_out |= decider.cases_cut_off(node)
                case ast.Name(id=name, ctx=ast.Load()) if table := self.tables.get(name):
                    if decider.is_table(table):
                        gone = decider.cut_off(table)
                        yield from (n for n in ast.walk(table) if n not in gone)
                case _:
                    pass
            yield node

    @property
    def tables(self) -> Mapping[str, ast.Dict]:
        """Dictionaries that the module writes down under a name."""
        if not self._tables:
            for node in self.tree.body:
                match node:
                    case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict() as table):
                        self._tables[name] = table
                    case _:
                        pass
        return self._tables

    def is_option(self, node: ast.AST, aliases: frozenset[str]) -> bool:
        """Whether an expression is the value of the switch."""
        option = self.words.option
        match node:
            case ast.Name(id=name) if name in aliases:
                return True
            case ast.Call(func=ast.Attribute(value=inner, attr=method), args=[]):
                return method in _METHODS and self.is_option(inner, aliases)
            case ast.Attribute(value=inner, attr="value"):
                return self.is_option(inner, aliases)
            case ast.Call(args=args):
                return any(_text(argument) == option for argument in args[:2])
            case ast.Subscript(slice=key):
                return _text(key) == option
            case _:
                return identifier(node) in {option, "switch"}


class _Decider:
    """Decides conditions for one value of the switch, and notes which it could not."""

    def __init__(self, chooser: Chooser, value: str, function: Function) -> None:
        self._chooser, self._value = chooser, value
        self._flags = _bound_once(function)
        aliases = (n for n, v in self._flags.items() if chooser.is_option(v, frozenset()))
        self._aliases = frozenset(aliases)
        self._settled: set[ast.expr] = set()
        self.unsure = False

    def decide(self, test: ast.expr) -> bool | None:
        """Whether a condition on the switch holds; None for any other one."""
        match test:
            case ast.BoolOp() | ast.UnaryOp(op=ast.Not()) | ast.Constant():
                return None
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                answer = self._compared(left, op, right)
            case ast.Name(id=name) if name in self._flags and name not in self._aliases:
                flag = self._flags.pop(name)  # so that no flag is made of itself
                answer = truth(flag, self._chooser.code.known, self.decide)
                self._flags[name] = flag
            case _:
                answer = self._as_flag(test)
        if answer is None and any(map(self._asks, ast.walk(test))):
            self.unsure = True
        if answer is not None:
            self._settled.update(n for n in ast.walk(test) if isinstance(n, ast.expr))
        return answer

    def is_open(self, node: ast.AST) -> bool:
        """Whether a node compares the switch, and what comes of that is not followed."""
        compares = isinstance(node, ast.Compare) and node not in self._settled
        return compares and any(map(self._asks, ast.walk(node)))

    def _asks(self, node: ast.AST) -> bool:
        return self.is_option(node) or self._chooser.words.tests_switch(node)

    def is_option(self, node: ast.AST) -> bool:
        """Whether an expression is the value of the switch, also under a local name."""
        return self._chooser.is_option(node, self._aliases)

    def _as_flag(self, test: ast.expr) -> bool | None:
        """A value of the switch, or a flag that is named after the path's value."""
        words = self._chooser.words
        if self.is_option(test):
            return self._value not in _FALSE
        name = identifier(test)
        is_flag = bool(name) and has_word(name, words.value) and not words.is_fallback(name)
        return self._value == words.value if is_flag else None

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> bool | None:
        if not self.is_option(left):
            left, right = right, left
            if not self.is_option(left) or isinstance(op, ast.In | ast.NotIn):
                return None
        wanted = self._values(right)
        if wanted is None or not isinstance(op, _EQUAL | _UNEQUAL):
            return None
        return (self._value in wanted) is isinstance(op, _EQUAL)

    def _values(self, node: ast.expr) -> set[str] | None:
        """What a value of the switch is compared with; None when that can not be told."""
        parts: list[ast.expr] = [node]
        match node:
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                pass
            case ast.Dict(keys=keys):
                parts = [key for key in keys if key is not None]
            case ast.Name(id=name) if table := self._chooser.tables.get(name):
                parts = [key for key in table.keys if key is not None]
            case _:
                pass
        found = [self._word(part) for part in parts]
        return None if None in found else {word for word in found if word is not None}

    def _word(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Constant):
            return spelled(str(node.value))
        known = self._chooser.carried.constant(self._chooser.path, node)
        if known is not None:
            return spelled(known)
        member = node.attr if isinstance(node, ast.Attribute) else ""
        return spelled(member) if member.isupper() else None

    def is_table(self, node: ast.Dict) -> bool:
        """Whether a dictionary has an entry for the path's value."""
        if len(node.keys) > _TABLE_LIMIT:
            return False
        keys = [self._word(key) for key in node.keys if key is not None]
        return self._chooser.words.value in keys

    def cut_off(self, table: ast.Dict) -> set[ast.AST]:
        """What a table has for other values."""
        pairs = zip(table.keys, table.values, strict=True)
        return _all_of(v for k, v in pairs if k is None or self._word(k) != self._value)

    def cases_cut_off(self, node: ast.Match) -> set[ast.AST]:
        """The cases that another value leads to."""
        if not self.is_option(node.subject):
            return set()
        gone: list[ast.AST] = []
        settled = False
        for case in node.cases:
            wanted = self._pattern(case.pattern)
            if settled or (wanted is not None and self._value not in wanted):
                gone += case.body
            elif wanted is not None and case.guard is None:
                settled = True
        return _all_of(gone)

    def _pattern(self, node: ast.pattern) -> set[str] | None:
        match node:
            case ast.MatchValue(value=value):
                return self._values(value)
            case ast.MatchOr(patterns=patterns):
                found = [self._pattern(inner) for inner in patterns]
                return None if None in found else set().union(*(f for f in found if f))
            case _:
                return None


def _bound_once(function: Function) -> dict[str, ast.expr]:
    """Local names that a function binds once, with what they are bound to."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found.setdefault(name, []).append(value)
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                found.setdefault(name, []).append(value)
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                found.setdefault(name, []).extend([value, value])
            case _:
                pass
    return {name: values[0] for name, values in found.items() if len(values) == 1}


_EQUAL = ast.Eq | ast.Is | ast.In
_UNEQUAL = ast.NotEq | ast.IsNot | ast.NotIn


def things(carried: Carried, path: str, nodes: Iterable[ast.AST]) -> Mapping[str, int]:
    """Whatever nodes use, by the name of what they stand for, and the first line of each."""
    found: dict[str, int] = {}
    for node in nodes:
        if is_used(node) and (thing := carried.spoken(path, node) or identifier(node)):
            found[thing] = min(node.lineno, found.get(thing, node.lineno))
    return found


def says_yes(function: Function, code: Code) -> bool:
    """Whether whatever a function gives back counts as true, and something is given back."""
    given = [n.value for n in reachable(function.body, code.known) if isinstance(n, ast.Return)]
    return bool(given) and all(v is not None and truth(v, code.known) is True for v in given)


def asks(function: Function) -> bool:
    """Whether a function gives back answers to questions."""
    given = [n.value for n in ast.walk(function) if isinstance(n, ast.Return)]
    return any(
        isinstance(v, ast.Compare | ast.BoolOp)
        or (isinstance(v, ast.UnaryOp) and isinstance(v.op, ast.Not))
        or (isinstance(v, ast.Constant) and v.value is False)
        for v in given
    )


def _text(node: ast.AST) -> str:
    text = node.value if isinstance(node, ast.Constant) else None
    return spelled(text) if isinstance(text, str) else ""


def _all_of(nodes: Iterable[ast.AST]) -> set[ast.AST]:
    return {inner for node in nodes for inner in ast.walk(node)}
