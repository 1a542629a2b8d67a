# SPDX-License-Identifier: Apache-2.0
"""FT217: one model imports nothing from another one's roots."""

from collections.abc import Iterator

from fasttrack.case import Case, in_roots
from fasttrack.change.tree import Entry
from fasttrack.finding import Finding, Level
from fasttrack.meaning.modules import modules_of
from fasttrack.rules.base import EntryRule
from fasttrack.rules.isolation.new_imports import changed_python, new_imports, speaks_of


class OtherModel(EntryRule):
    """New imports from another manifest's roots."""

    id = "FT217"
    slug = "other-model"
    title = "one model does not import another"
    level = Level.ROUTE
    refuses = (
        "A changed Python file in the roots of one manifest that newly imports a module from the "
        "roots of another one."
    )
    why = (
        "The other path changes on a fast track of its own, by evidence that says nothing about "
        "this one; and when it is taken out, this one breaks."
    )
    blind = "Names that are computed, and what reaches the other model through shared code."
    fix = "move what both need to shared code, by an ordinary review"

    def entries(self, case: Case) -> Iterator[Entry]:
        """Changed Python files in the roots, where there is more than one manifest."""
        if len(case.head.valid) > 1:
            yield from filter(changed_python, case.governed_entries())

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """One finding for each import."""
        own = case.head.governing(entry.path)
        for manifest in case.head.valid.values():
            if own is None or manifest is own or not speaks_of(case, entry, manifest):
                continue
            told: set[int] = set()
            for one, path in new_imports(case, entry, modules_of(case, manifest)):
                if one.type_checking or one.line in told or not in_roots(manifest, path):
                    continue
                told.add(one.line)
                yield self.finding(
                    path=entry.path,
                    line=one.line,
                    saw=f"`{own.name}` imports `{path}` of the path `{manifest.name}`",
                    want="paths that know nothing of each other",
                )
