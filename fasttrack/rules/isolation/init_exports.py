# SPDX-License-Identifier: Apache-2.0
"""FT215: a package's `__init__` imports none of its modules."""

import posixpath
from collections.abc import Iterator

from fasttrack.case import Case, in_roots
from fasttrack.change.tree import Entry
from fasttrack.finding import Finding, Level
from fasttrack.globs import may_overlap
from fasttrack.manifest.model import Manifest
from fasttrack.meaning.modules import modules_of
from fasttrack.rules.base import EntryRule
from fasttrack.rules.isolation.new_imports import changed_python, new_imports


class InitExports(EntryRule):
    """New imports of a package's own modules in its `__init__`."""

    id = "FT215"
    slug = "init-exports"
    title = "an `__init__` ties no units together"
    level = Level.ROUTE
    refuses = (
        "An `__init__.py` in the roots that newly imports, when it is imported itself, a module "
        "from below its own folder, where files of two or more units lie."
    )
    why = (
        "Whoever imports one module runs the `__init__` above it. With such an import every unit "
        "depends on every other: an edit of one makes the evidence of all of them stale, and code "
        "of one runs in the tests of another."
    )
    blind = "Names that are computed, and modules that are imported in a function or by string."
    fix = "import from the module itself where its names are used"

    def entries(self, case: Case) -> Iterator[Entry]:
        """Changed `__init__.py` files in the roots."""
        for entry in case.governed_entries():
            if posixpath.basename(entry.path) == "__init__.py" and changed_python(entry):
                yield entry

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """One finding, at the first of the modules that it ties in."""
        folder = posixpath.dirname(entry.path) + "/"
        for manifest in case.head.valid.values():
            if not in_roots(manifest, entry.path) or _units_below(manifest, folder) < 2:
                continue
            tied: dict[str, int] = {}
            for one, path in new_imports(case, entry, modules_of(case, manifest)):
                late = one.inside_function or one.type_checking
                if path.startswith(folder) and path != entry.path and not late:
                    tied.setdefault(path, one.line)
            if tied:
                first, *others = tied
                more = f" and {len(others)} more" if others else ""
                yield self.finding(
                    path=entry.path,
                    line=tied[first],
                    saw=f"the package imports its own module `{first}`{more}",
                    want="an `__init__` that imports none of the units' modules",
                    content="\n".join(tied),
                )


def _units_below(manifest: Manifest, folder: str) -> int:
    pattern = f"{folder}**"
    return sum(any(may_overlap(pattern, file) for file in unit.files) for unit in manifest.units)
