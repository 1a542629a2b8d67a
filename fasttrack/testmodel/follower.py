# SPDX-License-Identifier: Apache-2.0
"""Follows statements and expressions of test code with the values that the text tells.

Nothing runs: an operator on two known numbers is computed, everything else becomes words. Branches
whose condition is not told are followed both; loops over known items are followed item by item
while they are few. Steps and depth are bounded, and whoever asks learns when a bound was met.
"""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from fasttrack.testmodel import expressions, statements
from fasttrack.testmodel.events import CHECKS_LIMIT, Check, Place, Trace
from fasttrack.testmodel.frames import Ended, Exhausted, Flow, Frame, World, ast_text, module_of
from fasttrack.testmodel.strength import claim_of, roots_of
from fasttrack.testmodel.values import Claim, Mark, Namespace, Opaque, Scope, Value

DEPTH_LIMIT = 90
"""Expressions, statements and calls inside each other; each takes up to six of Python's frames."""
STEPS_LIMIT = 8_000
"""Nodes that are followed for one test."""


class Follower:
    """Follows one module or one test.

    Attributes:
        world: what imports lead to.
        trace: the events met.
        overrides: things of other packages that were assigned to, by dotted name.
        parameters: what each parameter of the test may be.
        unused: the call whose result the statement being followed drops.
        written: what the test itself has written to a file, by the file's words.
        equalities: what `assertEqual` is told to compare with.
        generated: parametrisations that a hook asks for, with the conditions of each.
    """

    def __init__(
        self, world: World, overrides: Namespace | None = None, limit: int = STEPS_LIMIT
    ) -> None:
        self.world = world
        self.trace = Trace()
        self.overrides: Namespace = dict(overrides or {})
        self.frames: list[Frame] = [Frame()]
        self.requested: Callable[[str], Value] = lambda name: Opaque(name, external=True)
        self.handed_over: set[ast.AST] = set()
        self.parameters: Namespace = {}
        self.unused: ast.expr | None = None
        self.written: dict[str, Value] = {}
        self.equalities: list[Value] = []
        self.generated: list[tuple[Mark, str]] = []
        self._last = max(0, world.steps - limit)

    def value(self, node: ast.expr, scope: Scope) -> Value:
        """What an expression stands for."""
        evaluate = expressions.TABLE.get(node.__class__)
        if evaluate is None:
            return Opaque(f"<{type(node).__name__}>")
        world = self.world
        world.steps -= 1
        if world.steps < self._last or world.depth > DEPTH_LIMIT:
            raise Exhausted
        world.depth += 1
        try:
            return evaluate(self, node, scope)
        finally:
            world.depth -= 1

    def values(self, nodes: Sequence[ast.expr], scope: Scope) -> list[Value]:
        """What some expressions stand for."""
        return [self.value(node, scope) for node in nodes]

    def follow(self, body: Sequence[ast.stmt], scope: Scope) -> Flow:
        """Follows statements until one ends the block; notes the assertions behind it."""
        world = self.world
        for index, node in enumerate(body):
            execute = statements.TABLE.get(node.__class__)
            if execute is None:
                continue
            world.steps -= 1  # as in `value`; a function of its own would cost as much as it does
            if world.steps < self._last or world.depth > DEPTH_LIMIT:
                raise Exhausted
            world.depth += 1
            try:
                flow = execute(self, node, scope)
            except Ended as end:
                flow = end.flow
            finally:
                world.depth -= 1
            if flow is not Flow.NORMAL:
                self.note_dead(body[index + 1 :], scope, flow.value)
                return flow
        return Flow.NORMAL

    @contextmanager
    def frame(self, frame: Frame) -> Iterator[Frame]:
        """While a function is followed; conditions of its early returns end with it."""
        self.frames.append(frame)
        held = len(self.trace.conditions)
        try:
            yield frame
        finally:
            self.frames.pop()
            del self.trace.conditions[held:]

    def check(
        self,
        claim: Claim,
        node: ast.AST,
        scope: Scope,
        *,
        kind: str = "",
        tolerances: Mapping[str, Value] | None = None,
        dead: str = "",
    ) -> None:
        """Notes an assertion."""
        if self.trace.quiet:
            return
        if len(self.trace.checks) >= CHECKS_LIMIT:
            raise Exhausted
        place = self.place(node, scope)
        self.trace.checks.append(
            Check(
                kind=kind or claim.kind,
                text=claim.text,
                node=node,
                source=place[0] + ":" + ast_text(node),
                strength=claim.strength,
                roots=roots_of(claim.text),
                tolerances=dict(claim.tolerances if tolerances is None else tolerances),
                site=(*self.trace.site, place),
                times=self.trace.times,
                dead=dead or (self.trace.dead[-1] if self.trace.dead else ""),
                conditions=tuple(self.trace.conditions),
                cuts=claim.cuts,
            )
        )

    def asserted(self, value: Value, node: ast.AST, scope: Scope) -> None:
        """Notes the assertion of a value."""
        self.check(claim_of(value), node, scope)

    def note_dead(self, body: Sequence[ast.stmt], scope: Scope, why: str) -> None:
        """Notes assertions that no run reaches, by their text alone."""
        if self.trace.quiet:
            return
        for statement in body:
            for node in _asserting(statement):
                self.check(Claim("dead", ast_text(node), 0), node, scope, dead=why)

    def place(self, node: ast.AST, scope: Scope) -> Place:
        """Where a piece of syntax is."""
        return module_of(scope).path, getattr(node, "lineno", 0)


def _asserting(statement: ast.stmt) -> Sequence[ast.AST]:
    """The parts of a statement that assert, by their looks; found once for all that meet it."""
    known: Sequence[ast.AST] | None = getattr(statement, "asserting", None)
    if known is None:
        nodes = ast.walk(statement)
        known = [n for n in nodes if isinstance(n, ast.Assert) or _looks_asserting(n)]
        statement.asserting = known  # type: ignore[attr-defined]
    return known


def _looks_asserting(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    name = node.func.id if isinstance(node.func, ast.Name) else name
    return name.startswith(("assert", "check_", "verify"))
