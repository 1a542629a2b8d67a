# SPDX-License-Identifier: Apache-2.0
"""FT124: code in the roots imports no third-party package that it did not import before."""

import contextlib
import posixpath
import sys
from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.imports import Import, imports_of
from fasttrack.change.tree import Entry, Tree
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import Rule
from fasttrack.rules.confinement.readable import changed_file, is_python, is_regular
from fasttrack.rules.confinement.resulting_tree import resulting_tree

_NOT_IN_EVERY_PYTHON = frozenset(
    [
        "aifc",
        "annotationlib",
        "asynchat",
        "asyncore",
        "audioop",
        "cgi",
        "cgitb",
        "chunk",
        "compression",
        "crypt",
        "distutils",
        "imghdr",
        "imp",
        "lib2to3",
        "mailcap",
        "msilib",
        "nis",
        "nntplib",
        "ossaudiodev",
        "pipes",
        "smtpd",
        "sndhdr",
        "spwd",
        "sunau",
        "telnetlib",
        "uu",
        "xdrlib",
    ]
)
"""Modules that Python 3.11 has and a later one lacks, or the reverse."""
STANDARD_LIBRARY = frozenset(
    name
    for name in sys.stdlib_module_names
    if name == "__future__" or not (name.startswith("_") or name in _NOT_IN_EVERY_PYTHON)
)
"""Public modules of every supported Python, so that a verdict does not depend on ours."""


class NewImport(Rule):
    """Third-party packages that the roots did not import."""

    id = "FT124"
    slug = "new-import"
    title = "no new third-party import in the roots"
    level = Level.ROUTE
    refuses = (
        "More new third-party packages than the policy's `budgets.new_dependencies`: top-level "
        "modules that a changed Python file in the roots imports and that are neither in the "
        "standard library, nor in this repository, nor in the policy's `imports`, nor imported "
        "in the roots at the target branch's tip. Each is reported where it is first imported."
    )
    why = "An import runs the package's code, with all rights, in the process that serves."
    blind = "Names that are computed, includes of C++ and CUDA files, and what packages import."
    fix = "use what is there already, or add the package to the policy's `imports` first"

    def check(self, case: Case) -> Iterator[Finding]:
        """Collects imports of changed root files and takes away what was there."""
        found: dict[str, tuple[str, Import]] = {}
        for entry in case.governed_entries():
            if not is_python(entry.path) or not changed_file(entry):
                continue
            try:
                for name, where in _top_level(case, entry):
                    found.setdefault(name, (entry.path, where))
            except FactUnavailable as reason:
                yield self.could_not_tell(reason, entry.path)
        foreign = found.keys() - STANDARD_LIBRARY - set(case.policy.imports)
        if not foreign:
            return
        foreign -= _first_party(case)
        new = sorted(foreign - _imported_before(case, foreign))
        limit = case.policy.budgets.new_dependencies
        if len(new) <= limit:
            return
        for name in new:
            path, where = found[name]
            yield self.finding(
                path=path,
                line=where.line,
                saw=f"a new third-party import `{name}`, one of {len(new)}",
                want=f"at most {limit} new packages",
                content=f"{name} {entry.new.oid}",
            )


def _top_level(case: Case, entry: Entry) -> Iterator[tuple[str, Import]]:
    for found in imports_of(case.change.text(entry.new).removeprefix("\ufeff")):
        if not found.level and found.module:
            yield found.module.partition(".")[0], found


def _first_party(case: Case) -> frozenset[str]:
    """Names that the repository itself answers to: at its top, and where the roots' package is."""
    tree = resulting_tree(case)
    roots = [root for m in case.head.valid.values() for root in m.code.roots]
    folders = {"", *(_import_folder(tree, root) for root in roots)}
    names: set[str] = set()
    for path in tree:
        for folder in folders:
            if path.startswith(folder):
                name, slash, _ = path[len(folder) :].partition("/")
                if slash or is_python(name):
                    names.add(name if slash else name.rpartition(".")[0])
    return frozenset(names)


def _import_folder(tree: Tree, root: str) -> str:
    """The folder that must be on the module path to import a root; empty or ending in `/`."""
    parents = posixpath.dirname(root.rstrip("/")).split("/")
    for depth in range(1, len(parents) + 1):
        if "/".join((*parents[:depth], "__init__.py")) in tree:
            return "".join(f"{parent}/" for parent in parents[: depth - 1])
    return "".join(f"{parent}/" for parent in parents if parent)


def _imported_before(case: Case, names: set[str]) -> frozenset[str]:
    """Those of `names` that the target branch's tip imports in the roots."""
    seen: set[str] = set()
    for path in case.change.base:
        if not is_python(path) or case.base.governing(path) is None or names <= seen:
            continue
        side = case.change.base.get(path)
        # A file that can not be read or parsed vouches for no import.
        with contextlib.suppress(FactUnavailable):
            if side is not None and is_regular(side):
                text = case.change.text(side).removeprefix("\ufeff")
                if any(name in text for name in names - seen):
                    seen |= {found.module.partition(".")[0] for found in imports_of(text)}
    return frozenset(seen & names)
