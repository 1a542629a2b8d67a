# SPDX-License-Identifier: Apache-2.0
"""FT410: the reference is not edited together with the kernel."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding, Level
from fasttrack.policy.model import PathClass
from fasttrack.rules.base import EntryRule
from fasttrack.rules.confinement.readable import is_python, text_of
from fasttrack.rules.confinement.same_program import is_same_program


class OracleEdited(EntryRule):
    """A reference that changes together with what it is compared with."""

    id = "FT410"
    slug = "oracle-edited"
    title = "the reference is not edited together with the kernel"
    level = Level.ROUTE
    refuses = (
        "A changed or deleted file of the policy's class `reference` in a change that also edits "
        "program code inside the roots. Comments and docstrings are no edits."
    )
    why = "Both can be made wrong in the same way, and every comparison between them still passes."
    blind = "References in files of other classes, such as those written inside a test."
    fix = "send the edit of the reference as a change of its own, and the kernel after it"

    def entries(self, case: Case) -> Iterator[Entry]:
        """The references, where a kernel changes too."""
        references = [
            entry
            for entry in case.entries
            if case.path_class(entry.path) is PathClass.REFERENCE and not entry.added
        ]
        if references and any(_may_be_edit(case, entry) for entry in case.governed_entries()):
            yield from references

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Reports one reference."""
        if _is_edit(case, entry):
            yield self.finding(
                path=entry.path,
                saw="the reference is edited in the same change as the kernel",
                want="a reference that stays as it is while kernels change",
                content=entry.new.oid or entry.old.oid,
            )


def _may_be_edit(case: Case, entry: Entry) -> bool:
    """Whether a file inside the roots changes what it does; one that can not be read may."""
    try:
        return _is_edit(case, entry)
    except FactUnavailable:
        return True


def _is_edit(case: Case, entry: Entry) -> bool:
    """Whether a change of a file changes what it does."""
    if not (entry.modified and is_python(entry.path)):
        return True
    old, new = text_of(case, entry.old), text_of(case, entry.new)
    return old is None or new is None or not is_same_program(old, new)
