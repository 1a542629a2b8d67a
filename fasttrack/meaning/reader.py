# SPDX-License-Identifier: Apache-2.0
"""Reads one module as Python would run it, with what is known of its values and nothing else.

Statements are followed in their order, first those that run at import and then the body of every
function, with its parameters unknown. A call of a function whose source is there is followed with
what it is given. Branches that differ leave both values. All of it is bounded: by steps, by the
depth of calls and by the depth of expressions.
"""

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fasttrack.meaning import annotations, calls, expressions, statements
from fasttrack.meaning.frames import Followed, Found, Frame
from fasttrack.meaning.kinds import Kind
from fasttrack.meaning.objects import elements
from fasttrack.meaning.parameters import bound_to, foreign_names, receiver, tells
from fasttrack.meaning.pieces import Sketch
from fasttrack.meaning.project import Project
from fasttrack.meaning.scopes import Scope, bound_names
from fasttrack.meaning.sketch import SHORT_LINES
from fasttrack.meaning.values import (
    UNKNOWN,
    Foreign,
    Function,
    FunctionNode,
    Items,
    Values,
    joined,
)

STEPS_LIMIT = 30_000
"""Nodes of one file after which calls are no longer followed, and loops no longer unrolled."""
CALLS_LIMIT = 5
"""Depth of calls that are followed."""
DEPTH_LIMIT = 120
"""Depth of statements and expressions; Python itself gives up at a thousand frames."""


class Reader:
    """One reading of one module.

    Attributes:
        project: where other modules are found.
        frame: where it is now.
        found: effects so far.
        too_deep: part of the module is nested too deeply to be followed.
        raised: exceptions so far, for what catches them.
        place: the statement or function that it is in, for calls that nobody writes down.
    """

    def __init__(self, project: Project, scope: Scope, *, recording: bool) -> None:
        """Reads into `scope`; a module that is only asked for its names records no effects."""
        self.project = project
        self.frame = Frame(scope)
        self.found: dict[tuple[int, Kind, str], Found] = {}
        self.too_deep = False
        self.raised: list[Values] = []
        self.place: ast.AST = ast.Pass()
        self._recording = recording
        self._path = scope.path
        self._steps = 0
        self._depth = 0
        self._functions: list[Function] = []
        self._known: dict[object, Values] = {}
        self._local_names: dict[FunctionNode, frozenset[str]] = {}

    def read(self, tree: ast.Module, left: Sketch | None = None) -> None:
        """Reads a module from top to bottom, and then its functions.

        Args:
            tree: the module.
            left: which of its lines need a look; all unless given.
        """
        self.run(tree.body)
        if not self._recording:
            return
        seen: set[FunctionNode] = set()
        for function in self._functions:
            node = function.node
            if self._steps > STEPS_LIMIT and node in seen:
                continue  # defined again by a call, which may define it twice, and so on
            seen.add(node)
            if left is None or left.needs(node.lineno, node.end_lineno or node.lineno):
                self.frame = Frame(function.scope, at_import=False)
                self.place = node
                self.follow(function, receiver(function), {}, None)

    def run(self, body: Sequence[ast.stmt]) -> None:
        """Runs statements."""
        for statement in body:
            self._steps += 1
            handler = statements.HANDLERS.get(statement.__class__)
            if handler is not None and self._enter():
                outer, self.place = self.place, statement
                handler(self, statement)
                self.place = outer
                self._depth -= 1

    def value(self, node: ast.expr | None) -> Values:
        """What an expression may be, with all effects of evaluating it."""
        if node is None:
            return UNKNOWN
        self._steps += 1
        handler = expressions.HANDLERS.get(node.__class__)
        if handler is None or not self._enter():
            return UNKNOWN
        values = handler(self, node)
        self._depth -= 1
        return values

    def apply(self, functions: Values, arguments: calls.Arguments) -> Values:
        """Calls whatever some values are."""
        return calls.apply(self, functions, arguments)

    def _enter(self) -> bool:
        if self._depth >= DEPTH_LIMIT:
            self.too_deep = True
            return False
        self._depth += 1
        return True

    def bind(self, name: str, values: Values, node: ast.AST) -> None:
        """Binds a name in the current scope."""
        line = getattr(node, "lineno", 0)
        if line and any(isinstance(value, Foreign) for value in values):
            place = self.spot(line)
            values = tuple(v.held_by(name, place) if isinstance(v, Foreign) else v for v in values)
        self.frame.scope.bind(name, values, weakly=self.frame.branches > 0)

    def spot(self, line: int) -> str:
        """A line in words, with the file that it is in where that is not the one that is told."""
        path = self.frame.scope.path
        own = self._recording and path == self._path
        return f"line {line}" if own else f"line {line} of `{path}`"

    def add(self, kind: Kind | None, target: Foreign, through: str, node: ast.AST) -> None:
        """Records an effect; of several ways to it, one at import counts, and then the shortest."""
        handed = self.frame.handed
        if not self._recording or kind is None:
            return
        if handed is not None and not target.name.startswith(handed):
            return
        key = (id(node), kind, target.name)
        before = self.found.get(key)
        frame = self.frame
        far = (not frame.at_import, len(frame.calls))
        if before is None or far < (not before.at_import, len(before.calls)):
            self.found[key] = Found(
                kind, target, through, node, frame.calls, frame.scope.local, frame.at_import
            )

    @contextmanager
    def branch(self) -> Iterator[None]:
        """A block that may or may not run."""
        self.frame.branches += 1
        try:
            yield
        finally:
            self.frame.branches -= 1

    def rounds(self, looped: Values) -> list[Values]:
        """What a loop hands out, one after the other; all at once when much has been read."""
        found = elements(self, looped) or [UNKNOWN]
        return found if self._steps <= STEPS_LIMIT else [joined(*found)]

    def defined(self, node: FunctionNode) -> Function:
        """A function at its definition: its default values are evaluated now."""
        arguments = node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        late = positional[len(positional) - len(arguments.defaults) :]
        defaults = {a.arg: self.value(v) for a, v in zip(late, arguments.defaults, strict=True)}
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if default is not None:
                defaults[argument.arg] = self.value(default)
        if not isinstance(node, ast.Lambda):
            for argument in (*positional, *arguments.kwonlyargs):
                annotations.evaluate(self, argument.annotation)
            annotations.evaluate(self, node.returns)
        function = Function(node, self.frame.scope.seen_by_functions, defaults)
        if self._recording:
            self._functions.append(function)
        return function

    def follow(
        self,
        function: Function,
        given: tuple[Values, ...],
        named: dict[str, Values],
        node: ast.AST | None,
        sent: Values = UNKNOWN,
    ) -> Values:
        """What a call of a function with its source returns.

        Args:
            function: the function.
            given: positional arguments.
            named: keyword arguments.
            node: the call; None when the body is read for its own sake.
            sent: what a generator is sent.
        """
        frame = self.frame
        at_import = frame.at_import and node is not None
        if node is not None and not any(tells(v) for v in (*given, *named.values(), sent)):
            given, named = (), {}  # with nothing to follow, one reading serves all calls
        key = (function, given, tuple(sorted(named.items(), key=lambda n: n[0])), at_import, sent)
        if key in self._known:
            return self._known[key]
        calls = frame.calls if node is None else (*frame.calls, Followed(function, node))
        inside = any(call.function.node is function.node for call in frame.calls)
        if inside or len(calls) > CALLS_LIMIT or (calls and self._steps > STEPS_LIMIT):
            return UNKNOWN
        if node is not None and not self._is_worth(function):
            return UNKNOWN
        self._known[key] = UNKNOWN
        scope = Scope(
            function.scope.path, function.scope.title, function.scope, self._local(function.node)
        )
        scope.names.update(bound_to(function, given, named))
        handed = frame.handed
        if scope.path != self._path and handed is None:
            handed = foreign_names((*given, *named.values()))
        self.frame = Frame(
            scope, at_import, calls, restored=frame.restored, handed=handed, sent=sent
        )
        values = self._run_body(function.node)
        for value in values:
            if isinstance(value, Items) and value.values is self.frame.yielded:
                value.made_by = (function, given, named)
        self._known[key] = values
        self.frame = frame
        return values

    def _is_worth(self, function: Function) -> bool:
        """Whether a call may do something: its body is short, or has something to look at."""
        first, last = function.node.lineno, function.node.end_lineno or function.node.lineno
        if last - first < SHORT_LINES:
            return True
        return self.project.touches(function.scope.path, first, last)

    def _local(self, node: FunctionNode) -> frozenset[str]:
        """The names that are local to a function, found once."""
        if node not in self._local_names:
            self._local_names[node] = bound_names(node)
        return self._local_names[node]

    def _run_body(self, node: FunctionNode) -> Values:
        if isinstance(node, ast.Lambda):
            return self.value(node.body)
        self.run(node.body)
        returned = joined(UNKNOWN, *self.frame.returned)
        if self.frame.yielded:
            return (Items(self.frame.yielded, result=returned),)
        return returned
