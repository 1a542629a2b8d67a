# SPDX-License-Identifier: Apache-2.0
"""Which functions inside the roots a test file uses whose parameters the change has altered."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from fasttrack.case import Case
from fasttrack.change.imports import Import, imports_of
from fasttrack.change.tree import Tree
from fasttrack.config import judged_or_head
from fasttrack.errors import FactUnavailable
from fasttrack.manifest.model import Manifest
from fasttrack.meaning.modules import modules_of
from fasttrack.meaning.source import parsed, source_of

Signatures = dict[str, str]
"""Public name in a module, dotted for methods, to its parameters or fields."""

TOLD = 8
"""Names of one test file that are told."""


def contract_changes(case: Case, path: str) -> tuple[str, ...]:
    """Altered signatures of what a test file of the target's tip imports from the roots."""
    found: dict[str, None] = {}
    with suppress(FactUnavailable):
        side = case.change.base.get(path)
        imports = imports_of(source_of(case, side)) if side else ()
        for manifest in case.base.valid.values():
            found |= dict.fromkeys(_changes(case, manifest, path, imports))
    return tuple(found)[:TOLD]


def _changes(case: Case, manifest: Manifest, test: str, imports: Sequence[Import]) -> Iterator[str]:
    modules = modules_of(case, manifest, case.change.base)
    head = judged_or_head(case.change)
    for found in imports:
        name = modules.absolute(test, found.module, found.level)
        whole = {part: modules.path_of(f"{name}.{part}") for part in found.names}
        for part, path in whole.items():
            if path is not None and modules.is_own(path):
                yield from _between(case, path, head, ())
            elif modules.is_own(home := modules.path_of(name)) and home is not None:
                yield from _between(case, home, head, (part,))
        if not found.names and modules.is_own(home := modules.path_of(name)) and home is not None:
            yield from _between(case, home, head, ())


def _between(case: Case, path: str, head: Tree, names: Sequence[str]) -> Iterator[str]:
    """Signatures of a module that differ; those of some names, or all."""
    before = _signatures(case, case.change.base, path)
    after = _signatures(case, head, path)
    if path not in head:
        yield f"`{path}` is gone"
        return
    for name, parameters in before.items():
        if names and name.partition(".")[0] not in names:
            continue
        if name not in after:
            yield f"`{name}` is gone"
        elif after[name] != parameters:
            yield f"`{name}({parameters})` takes ({after[name]}) now"


def _signatures(case: Case, tree: Tree, path: str) -> Signatures:
    side = tree.get(path)
    if side is None:
        return {}
    try:
        return dict(_of_body(parsed(case, side).body, ""))
    except (FactUnavailable, RecursionError):  # parameters that nobody can write down
        return {}


def _of_body(body: Sequence[ast.stmt], above: str) -> Iterator[tuple[str, str]]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if _is_public(node.name):
                yield above + node.name, ast.unparse(node.args)
            case ast.ClassDef() if _is_public(node.name):
                yield above + node.name, ", ".join(_fields(node))
                yield from _of_body(node.body, f"{above}{node.name}.")


def _fields(node: ast.ClassDef) -> Iterator[str]:
    """Annotated fields: the parameters of a dataclass."""
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                yield name if value is None else f"{name}={ast.unparse(value)}"


def _is_public(name: str) -> bool:
    return not name.startswith("_") or name in {"__init__", "__call__"}


def renamed_twins(case: Case, path: str, tests: Mapping[str, str]) -> dict[str, bool]:
    """Which tests of a file the change has under another name or in another file, body for body.

    Args:
        case: the change.
        path: a test file of the target's tip.
        tests: test id to the name of its function.
    """
    base, head = case.change.base, judged_or_head(case.change)
    before = _bodies(case, base, path)
    after: set[str] = set()
    kept = _bodies(case, head, path)
    for entry in case.entries:
        if entry.path.endswith(".py") and entry.path in head:
            known = _bodies(case, base, entry.path)
            found = _bodies(case, head, entry.path)
            after |= {body for name, body in found.items() if known.get(name) != body}
    return {id_: name not in kept and before.get(name) in after for id_, name in tests.items()}


def _bodies(case: Case, tree: Tree, path: str) -> Mapping[str, str]:
    """Function of a test file, by its name, to what it does."""
    side = tree.get(path)
    found: dict[str, str] = {}
    with suppress(FactUnavailable, RecursionError):
        for node in ast.walk(parsed(case, side)) if side is not None else ():
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                parts = (*node.decorator_list, node.args, *node.body)
                found[node.name] = "\n".join(ast.dump(part) for part in parts)
    return found
