# SPDX-License-Identifier: Apache-2.0
"""What a call of another package's function means, or of anything whose text is not there."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fasttrack.testmodel import calling
from fasttrack.testmodel.builtin import BUILTIN
from fasttrack.testmodel.cuts import common, of_call
from fasttrack.testmodel.events import IN_A_THREAD, Seed
from fasttrack.testmodel.folding import CannotTell
from fasttrack.testmodel.kept import READING, WRITING, through_file
from fasttrack.testmodel.known import (
    ASSERTING,
    METHODS,
    PATCHING,
    PATCHING_OBJECTS,
    PREDICATES,
    SEED_NAMES,
    SEEDS,
    TOLERANCE_NAMES,
    UNITTEST,
    UNITTEST_COMPARING,
    WEAK_UNITTEST,
    Comparing,
)
from fasttrack.testmodel.pure import PURE
from fasttrack.testmodel.runner import RUNNER
from fasttrack.testmodel.strength import (
    RELATION,
    SHAPE,
    TRIVIAL,
    TRUTH,
    VALUE,
    claim_of,
    is_anything,
    is_shape,
    negated,
    of_comparison,
    of_contents,
)
from fasttrack.testmodel.values import (
    Claim,
    Context,
    Function,
    Opaque,
    Partial,
    Scope,
    Value,
    words,
)

if TYPE_CHECKING:
    from fasttrack.testmodel.follower import Follower

_ASSERTING_NAMES = ("assert", "check_", "verify_", "expect_", "_assert", "validate_")
_ELSEWHERE = {
    **dict.fromkeys(
        ("threading.Thread", "threading.Timer", "_thread.start_new_thread"), IN_A_THREAD
    ),
    "multiprocessing.Process": "in another process, whose failure fails no test",
    "atexit.register": "run when all tests are over",
    "weakref.finalize": "run when all tests are over",
}
"""Functions that call what they are given where a failure fails no test."""
_LOOSENING = {"equal_nan": True, "check_dtype": False, "check_device": False}
"""Options of comparing functions, with the value at which they let more pass."""


def call(  # noqa: PLR0911, PLR0917
    f: "Follower",
    callee: Value,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    node: ast.AST,
    scope: Scope,
) -> Value:
    """The value of a call that is not followed; notes what it means to the test."""
    dotted = words(callee).removeprefix("builtins.")
    meaning = RUNNER.get(dotted) or BUILTIN.get(dotted)
    if meaning is not None:
        return meaning(f, args, kwargs, node, scope)
    if dotted in ASSERTING:
        _compared(f, dotted, ASSERTING[dotted], args, kwargs, node, scope)
        return None
    if dotted in PREDICATES:
        return predicate(dotted, PREDICATES[dotted], args, kwargs)
    last = dotted.rpartition(".")[2]
    if dotted in SEEDS or last in SEED_NAMES:
        return _seeded(f, dotted, args, kwargs, node, scope)
    if dotted in PATCHING or dotted in PATCHING_OBJECTS:
        return _patch(dotted, args, kwargs)
    if (told := _told(f, dotted, args, kwargs)) is not _UNTOLD:
        return told
    if last in METHODS and not (isinstance(callee, Opaque) and callee.external):
        owner = Opaque(dotted.rpartition(".")[0])
        return predicate(f".{last}", METHODS[last], [owner, *args], kwargs, shift=1)
    if last.startswith(_ASSERTING_NAMES):
        _by_name(f, dotted, last, args, kwargs, node, scope)
    is_lost = last == "submit" and node is f.unused
    with f.trace.dying(IN_A_THREAD if is_lost else _ELSEWHERE.get(dotted, "")):
        _hand_over(f, [*args, *kwargs.values()], node, scope)
    return calling.call_words(dotted, args, kwargs, callee)


_UNTOLD = object()


def _told(f: "Follower", dotted: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    """The result of a call that the text tells; a private object for everything else."""
    if dotted.rpartition(".")[2] in WRITING | READING:
        kept = through_file(f, dotted, args)
        return _UNTOLD if kept is None else kept
    return _folded(dotted, args, kwargs)


def _folded(dotted: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    """The result of a pure function; a private object for everything else."""
    compute = PURE.get(dotted)
    if compute is None or set(kwargs) - {"strict", "key", "start"}:
        return _UNTOLD
    if "key" in kwargs and dotted != "sorted":
        return _UNTOLD  # which one it is depends on what the key makes of each
    start = {"start": kwargs["start"]} if "start" in kwargs else {}
    try:
        return compute(*args, **start)
    except (CannotTell, TypeError):
        return _UNTOLD


def tolerances(
    spec: Comparing, args: Sequence[Value], kwargs: Mapping[str, Value], shift: int = 0
) -> dict[str, Value]:
    """The tolerances of a comparing call, its defaults included."""
    found: dict[str, Value] = dict(spec.defaults)
    for name, position in spec.positions.items():
        if name in kwargs:
            found[name] = kwargs[name]
        elif position + shift < len(args):
            found[name] = args[position + shift]
        if found.get(name, 0) is None:
            found.pop(name)
            if name in spec.defaults:
                found[name] = spec.defaults[name]
    if "**" in kwargs:
        found |= {name: kwargs["**"] for name in spec.positions if name not in kwargs}
    if "delta" in found:
        found.pop("places", None)
    for name, loose in _LOOSENING.items():
        if kwargs.get(name) is loose:
            found[name] = 1
    return found


def predicate(
    dotted: str,
    spec: Comparing,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    shift: int = 0,
) -> Claim:
    """What the truth of a comparing call claims."""
    if dotted == "pytest.approx":
        expected = args[0] if args else kwargs.get("expected")
        told = tolerances(spec, args, kwargs)
        return Claim(dotted, words(expected), VALUE, told, common((expected,)))
    text = " ~ ".join(words(arg) for arg in args[:2])
    told = tolerances(spec, args, kwargs, shift)
    return Claim(dotted, text, _strength(args), told, common(args[:2]))


def _strength(args: Sequence[Value]) -> int:
    if len(args) < 2:
        return VALUE
    if args[0] is args[1] or is_anything(*args[:2]):
        return TRIVIAL
    if is_shape(args[0]) or is_shape(args[1]):
        return SHAPE
    return of_contents(words(args[0]), words(args[1]))


def _compared(  # noqa: PLR0917
    f: "Follower",
    dotted: str,
    spec: Comparing,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    node: ast.AST,
    scope: Scope,
) -> None:
    named = [kwargs[name] for name in ("actual", "expected", "desired", "x", "y") if name in kwargs]
    compared = [*args[:2], *named][:2]
    text = " ~ ".join(words(value) for value in compared)
    told = tolerances(spec, args, kwargs)
    cuts = common(compared) | of_call(None, dotted, (), {})
    claim = Claim(dotted, text, _strength(compared), told, cuts)
    f.check(claim, node, scope)


def _by_name(  # noqa: PLR0917
    f: "Follower",
    dotted: str,
    last: str,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    node: ast.AST,
    scope: Scope,
) -> None:
    """A function that asserts by its name: of unittest, of a mock, of a harness."""
    if last in UNITTEST:
        if f.equalities and not _compares(f, args[:2], node, scope):
            f.check(Claim(last, " ~ ".join(map(words, args[:2])), TRUTH), node, scope)
            return
        _compared(f, last, UNITTEST[last], args, kwargs, node, scope)
        return
    if last in WEAK_UNITTEST and args:
        claim = negated(claim_of(args[0])) if last == "assertFalse" else claim_of(args[0])
        strength = claim.strength if last in {"assertTrue", "assertFalse"} else TRUTH
        f.check(replace(claim, strength=strength), node, scope)
        return
    if last in UNITTEST_COMPARING and len(args) > 1:
        f.check(claim_of(of_comparison(UNITTEST_COMPARING[last], args[0], args[1])), node, scope)
        return
    given = {name: value for name, value in kwargs.items() if name in TOLERANCE_NAMES}
    text = calling.call_words(dotted, args[:3], {}).words
    strength = _strength(args) if len(args) > 1 else RELATION
    f.check(Claim(dotted, text, strength, given, common(args[:2])), node, scope)


def _compares(f: "Follower", args: Sequence[Value], node: ast.AST, scope: Scope) -> bool:
    """Whether the functions that a test case compares with assert anything."""
    met = len(f.trace.checks)
    for function in f.equalities:
        calling.call(f, function, args, {}, node, scope)
    return len(f.trace.checks) > met


def _seeded(  # noqa: PLR0917
    f: "Follower",
    dotted: str,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    node: ast.AST,
    scope: Scope,
) -> Value:
    value = args[0] if args else kwargs.get("seed")
    name = "hypothesis" if dotted.startswith("hypothesis.") else dotted.rpartition(".")[2]
    if value is not None:
        f.trace.seeds.append(Seed(name, value, f.place(node, scope)))
    else:
        f.trace.seeds.append(Seed(name, Opaque("chosen anew"), f.place(node, scope)))
    return calling.call_words(dotted, args, kwargs)


def _patch(dotted: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    target: Value = args[0] if args else kwargs.get("target")
    new = args[1] if len(args) > 1 else kwargs.get("new", Opaque("<mock>"))
    if dotted in PATCHING_OBJECTS:
        name = args[1] if len(args) > 1 else kwargs.get("attribute", "")
        target = f"{words(target)}.{name}" if isinstance(name, str) else words(target)
        new = args[2] if len(args) > 2 else kwargs.get("new", Opaque("<mock>"))
    return Context("patch", (target, new))


def _hand_over(f: "Follower", values: Sequence[Value], node: ast.AST, scope: Scope) -> None:
    """Follows functions of the test that are given to code without a text, once each."""
    for value in values:
        function = value.function if isinstance(value, Partial) else value
        if not isinstance(function, Function) or function.node in f.handed_over:
            continue
        f.handed_over.add(function.node)
        calling.call(f, value, [], {}, node, scope)
