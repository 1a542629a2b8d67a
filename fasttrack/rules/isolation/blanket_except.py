# SPDX-License-Identifier: Apache-2.0
"""FT222: a failure of a kernel is not turned into the fallback."""

import ast
import builtins
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Set

from fasttrack.case import Case, in_roots
from fasttrack.change.tree import Entry, Side
from fasttrack.config import judged_or_head
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding, Level
from fasttrack.manifest.model import Manifest
from fasttrack.meaning.modules import Modules, modules_of
from fasttrack.meaning.pieces import outline, tree_of
from fasttrack.meaning.source import is_python, is_regular
from fasttrack.rules.base import Rule
from fasttrack.rules.confinement.readable import added_text
from fasttrack.rules.isolation.carried import BothSides, Carried
from fasttrack.rules.isolation.handlers import (
    ALL,
    GUARDED,
    Blanket,
    blankets,
    is_all,
    is_narrow,
    is_possible,
)
from fasttrack.rules.isolation.switch_files import Pair, owned, text

FILES_LIMIT = 400
"""Unchanged files that are looked at, where a change gives the widest type another name."""
_WIDE = re.compile(r"\b(Base)?Exception\b")
_ALIAS = re.compile(r"=\s*[\[({]?\s*(builtins\.)?(Base)?Exception\b")


class BlanketExcept(Rule):
    """New handlers in the roots that take every failure and go on."""

    id = "FT222"
    slug = "blanket-except"
    title = "a kernel that fails is seen to fail"
    level = Level.ROUTE
    refuses = (
        "In the roots and in wired files a new `except:`, `except Exception`, `except "
        "BaseException` or `suppress` of one of them, under whatever name, around a call of this "
        "repository's code or of a torch operator, whose handler does not raise on every way: it "
        "returns, calls something else, or goes on. The same for `RuntimeError` together with two "
        "more such types of Python, a `finally` that returns, an own `__exit__` that says that "
        "every failure is dealt with, and a future whose `exception()` only chooses what to do."
    )
    why = (
        "A kernel that can not be launched, reads past its end or gives no result then looks like "
        "a step outside the scope: the answer comes from the fallback, slower, and no test and no "
        "operator sees the failure."
    )
    blind = (
        "Handlers of narrower types that a kernel's failure has too, such as `RuntimeError` alone, "
        "an `__exit__` whose answer is computed, handlers outside the roots, and kernels that an "
        "installed package launches."
    )
    fix = "catch the one error that is expected, or raise again after cleaning up"

    def check(self, case: Case) -> Iterator[Finding]:
        """Compares the handlers of every changed file."""
        if not any(_brings(case, entry) for entry in case.entries):
            return
        told: set[str] = set()
        for manifest in case.head.valid.values():
            for pair in (*owned(case, manifest), *_importing(case, manifest)):
                if pair.path not in told:
                    told.add(pair.path)
                    yield from self._about(case, manifest, pair)

    def _about(self, case: Case, manifest: Manifest, pair: Pair) -> Iterator[Finding]:
        both = case.once(BothSides)
        new = _blankets(case, manifest, pair.path, pair.new, both.new)
        if not new:
            return
        before = _blankets(case, manifest, pair.path, pair.old, both.old)
        old = Counter((b.place, b.calls) for b in before)
        moved = Counter((b.caught, b.calls) for b in before)
        for found in new:
            here, anywhere = (found.place, found.calls), (found.caught, found.calls)
            if old[here] or moved[anywhere]:
                old[here] -= 1
                moved[anywhere] -= 1
                continue
            named = next((call for call in found.calls if "..." not in call), found.calls[0])
            what = named if named in GUARDED else f"`{named}`"
            yield self.finding(
                path=pair.path,
                line=found.line,
                saw=f"`{found.place}` goes on when {what} fails ({found.caught})",
                want="failures of the path that stop the step",
            )


def _importing(case: Case, manifest: Manifest) -> Iterator[Pair]:
    """Files of the roots that stay as they are and may catch what a changed file makes wider."""
    wider = [e.path for e in case.entries if _widens(case, e)]
    stems = {posixpath.basename(path).partition(".")[0] for path in wider}
    tree = judged_or_head(case.change) if wider else ()
    for path in [p for p in tree if is_python(p) and in_roots(manifest, p)][:FILES_LIMIT]:
        side = case.change.base.get(path)
        if side is not None and case.change.entry(path) is None:
            source = text(case, side)
            if any(stem in source for stem in stems):
                yield Pair(path, side, side)


def _widens(case: Case, entry: Entry) -> bool:
    """Whether an entry adds another name for the widest type; none that nobody can read does."""
    if not is_python(entry.path):
        return False
    source = text(case, entry.new)
    if "Exception" not in source or not _ALIAS.search(source):
        return False
    try:
        return bool(_ALIAS.search(_added(case, entry)))
    except FactUnavailable:
        return False


def _brings(case: Case, entry: Entry) -> bool:
    """Whether an entry leaves a file that may have such a handler, or another name for a type.

    Added lines alone do not tell: a `raise` that is taken out leaves none.
    """
    if not is_python(entry.path):
        return False
    source = text(case, entry.new)
    return bool(_WIDE.search(source)) or _is_possible(source)


def _added(case: Case, entry: Entry) -> str:
    return "\n".join(line.text for line in added_text(case, entry))


def _blankets(
    case: Case, manifest: Manifest, path: str, side: Side, carried: Carried
) -> list[Blanket]:
    source = text(case, side)
    if not is_regular(side) or not _is_possible(source):
        return []
    renames = bool(_ALIAS.search(source))
    try:
        tree = tree_of(source, outline(source, lambda part: renames or _is_possible(part)))
    except FactUnavailable:
        return []

    def is_blanket(caught: ast.expr | None) -> bool:
        if caught is None or is_all(caught):
            return True
        if isinstance(caught, ast.Tuple):
            return any(map(is_blanket, caught.elts))
        if not renames and is_narrow(caught):
            return False
        name = next((n.id for n in ast.walk(caught) if isinstance(n, ast.Name)), "")
        return carried.may_carry(tree, name) and carried.comes_to(path, caught, ALL)

    outside = _outside(tree, path, modules_of(case, manifest))
    return [*blankets(tree, is_blanket, outside)]


def _is_possible(source: str) -> bool:
    """Whether a text may hold such a statement, also under another name for the widest type."""
    return is_possible(source) or ("Exception" in source and bool(_ALIAS.search(source)))


def _outside(tree: ast.Module, path: str, modules: Modules) -> Set[str]:
    """Names of what is no code of this repository: built-in, or from an installed package."""
    found = set(dir(builtins))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if modules.path_of(alias.name) is None:
                    found.add(alias.asname or alias.name.partition(".")[0])
        elif isinstance(node, ast.ImportFrom):
            name = modules.absolute(path, node.module or "", node.level)
            if not node.level and modules.path_of(name) is None:
                parts = {a.asname or a.name: f"{name}.{a.name}" for a in node.names}
                found |= {bound for bound, full in parts.items() if not modules.path_of(full)}
    return found
