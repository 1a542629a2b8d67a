# SPDX-License-Identifier: Apache-2.0
"""FT101: every changed path is inside a root, wired, or part of the lane's own record."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.finding import Finding, Level
from fasttrack.policy.classes import fold
from fasttrack.policy.model import PathClass
from fasttrack.rules.base import EntryRule
from fasttrack.rules.confinement.listed_paths import what_happened
from fasttrack.rules.confinement.programs import is_program
from fasttrack.rules.confinement.readable import is_regular
from fasttrack.rules.confinement.test_settings import TestSettings
from fasttrack.rules.confinement.wired import allowance

OWN_RECORD = frozenset({PathClass.MANIFESTS, PathClass.POLICY})
"""Classes that need no root: manifests (FT3xx judges them) and policy (FT119)."""
EXECUTABLE = "100755"
LOADED_SUFFIXES = frozenset({"pyc", "pyo", "so", "pyd", "dll", "dylib", "whl", "egg", "zip"})
"""Files that an import can find, or that a loader runs, without being source."""


class OutsideScope(EntryRule):
    """Changed paths that no manifest governs and no wiring allows."""

    id = "FT101"
    slug = "outside-scope"
    title = "every changed path is inside the scope"
    level = Level.ROUTE
    refuses = (
        "A changed path that lies outside every manifest's roots, is not a wired file, and is "
        "neither a manifest, policy, documentation that no program reads, a new statement of "
        "evidence, nor a new test. A new test is a file named `test_*` or `*_test`, data beside "
        "it, or the empty `__init__.py` of a new folder. Existing tests, helpers that they could "
        "import, and the reference are outside: whoever edits what judges a kernel needs a reader."
    )
    why = (
        "Evidence speaks about the governed units only. A line outside them can change what every "
        "other path of the engine does, and nothing in the scope would show it."
    )
    blind = "What code inside the roots does to code outside them at run time; FT2xx looks at that."
    fix = "move the edit into the roots, or send it as a change of its own for ordinary review"
    false_alarms = "not measured yet"

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Reports one path outside roots and wiring."""
        path_class = case.path_class(entry.path)
        if case.governing(entry.path) is not None or allowance(case, entry.path) is not None:
            return
        what = _outsider(case, entry, path_class)
        if what is not None:
            yield self.finding(
                path=entry.path,
                saw=what,
                want="paths inside the manifest's roots or its wiring",
                content=entry.new.oid or entry.old.oid,
            )


def _outsider(case: Case, entry: Entry, path_class: PathClass) -> str | None:
    """What an ungoverned path is that needs a reader; None when it needs none."""
    if path_class in OWN_RECORD:
        return None
    if path_class is PathClass.DOCS:
        program = is_program(case, entry) or EXECUTABLE in (entry.old.mode, entry.new.mode)
        return "a program among the documentation" if program else None
    if path_class is PathClass.EVIDENCE:
        return None if entry.added else f"evidence that is {what_happened(entry)}"
    if path_class is PathClass.TESTS and entry.added and entry.path not in case.change.base:
        return None if _is_new_test(case, entry) else "a new file that existing tests may load"
    return f"a change to a `{path_class.value}` path outside every root"


def _is_new_test(case: Case, entry: Entry) -> bool:
    """Whether an added file is a test or its data, which no other test can come to run."""
    name = fold(entry.path).rpartition("/")[2]
    stem, _, suffix = name.rpartition(".")
    if stem.startswith("test_") or stem.endswith("_test"):
        return True
    if TestSettings.listing.holds(entry.path):
        return True  # FT122 reports it
    if name == "__init__.py" and is_regular(entry.new) and case.change.size(entry.new) == 0:
        return not case.change.base.has_folder(entry.path.rpartition("/")[0])
    return not is_program(case, entry) and suffix not in LOADED_SUFFIXES
