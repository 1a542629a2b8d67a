# SPDX-License-Identifier: Apache-2.0
"""FT411: no expected data is rewritten."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.finding import Finding, Level
from fasttrack.policy.model import PathClass
from fasttrack.rules.base import EntryRule
from fasttrack.rules.confinement.programs import is_program
from fasttrack.rules.confinement.readable import is_python, is_regular, text_of
from fasttrack.testmodel.reach import Reach
from fasttrack.testmodel.settings import INI_FILES

_NO_DATA = ("md", "rst", "toml", "cfg", "ini", "lock")


class GoldenFiles(EntryRule):
    """Expected data that is not what it was."""

    id = "FT411"
    slug = "golden-files"
    title = "expected data of the tests stays as it is"
    level = Level.ROUTE
    refuses = (
        "A changed or deleted data file among the tests that a test there names by its file name: "
        "expected outputs, recorded tensors, tables of cases. Lines that only come in addition "
        "are no change of what was expected."
    )
    why = "Whatever the kernel returns becomes right once it is what the test expects."
    blind = "Data that no test names literally, and data outside the tests."
    fix = "send the new data as a change of its own, with the program that made it"

    def entries(self, case: Case) -> Iterator[Entry]:
        """Data files among the tests that the target branch has."""
        for entry in case.entries:
            if not entry.added and case.path_class(entry.path) is PathClass.TESTS:
                name = entry.path.rpartition("/")[2]
                is_data = not is_python(entry.path) and name not in INI_FILES
                if is_data and not name.endswith(_NO_DATA) and not is_program(case, entry):
                    yield entry

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Reports one data file."""
        if not is_regular(entry.old) or _only_grows(case, entry):
            return
        reader = case.once(Reach).reader_of(entry.path)
        if reader:
            done = "deleted" if entry.deleted else "rewritten"
            yield self.finding(
                path=entry.path,
                saw=f"data that {reader} reads is {done}",
                want="expected data that stays as it is",
                content=entry.new.oid or entry.old.oid,
            )


def _only_grows(case: Case, entry: Entry) -> bool:
    """Whether all lines of a text stay, with others among them."""
    if not entry.modified or text_of(case, entry.old) is None or text_of(case, entry.new) is None:
        return False
    return case.change.line_counts(entry)[1] == 0
