# SPDX-License-Identifier: Apache-2.0
"""FT216: shared code imports nothing from the roots but where it is wired."""

import posixpath
from collections.abc import Iterator

from fasttrack.case import Case, in_roots
from fasttrack.change.tree import Entry
from fasttrack.config import judged_or_head
from fasttrack.finding import Finding, Level
from fasttrack.meaning.modules import modules_of
from fasttrack.policy.model import PathClass
from fasttrack.rules.base import EntryRule
from fasttrack.rules.confinement.wired import allowance
from fasttrack.rules.isolation.new_imports import changed_python, new_imports, speaks_of

_MAY_IMPORT = frozenset({PathClass.TESTS, PathClass.DOCS, PathClass.CI})
"""Classes of files that no model runs through."""


class ImportedModel(EntryRule):
    """New imports of governed modules in shared code."""

    id = "FT216"
    slug = "imported-model"
    title = "shared code does not import the model"
    level = Level.ROUTE
    refuses = (
        "A changed module of a package outside every root, neither wired nor a test, that newly "
        "imports a module of the roots, at its top or inside a function."
    )
    why = (
        "Shared code that imports one model fails with it, and brings the model's code into the "
        "process of every other one."
    )
    blind = (
        "Names that are computed or looked up in a table, and programs in folders without an "
        "`__init__.py`, which nothing imports. A wired file may import the model, in the lines of "
        "its symbol."
    )
    fix = "reach the path through the wired place, or register it by name"

    def entries(self, case: Case) -> Iterator[Entry]:
        """Changed Python files that are shared."""
        for entry in case.entries:
            if not changed_python(entry) or case.governing(entry.path) is not None:
                continue
            if case.path_class(entry.path) in _MAY_IMPORT or allowance(case, entry.path):
                continue
            if f"{posixpath.dirname(entry.path)}/__init__.py" in judged_or_head(case.change):
                yield entry

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """One finding for each import."""
        for manifest in case.head.valid.values():
            if not speaks_of(case, entry, manifest):
                continue
            told: set[int] = set()
            for one, path in new_imports(case, entry, modules_of(case, manifest)):
                if one.type_checking or one.line in told or not in_roots(manifest, path):
                    continue
                told.add(one.line)
                yield self.finding(
                    path=entry.path,
                    line=one.line,
                    saw=f"shared code imports `{path}` of the path `{manifest.name}`",
                    want="shared code that knows the path by its name alone",
                )
