# SPDX-License-Identifier: Apache-2.0
"""FT101: every changed path is inside a root, wired, or part of the lane's own record."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.finding import Finding, Level
from fasttrack.policy.classes import fold
from fasttrack.policy.model import PathClass
from fasttrack.rules.base import EntryRule
from fasttrack.rules.confinement.grown_tests import only_gains_tests
from fasttrack.rules.confinement.listed_paths import what_happened
from fasttrack.rules.confinement.programs import is_program
from fasttrack.rules.confinement.readable import is_python, is_regular, text_of
from fasttrack.rules.confinement.same_program import is_same_program
from fasttrack.rules.confinement.test_settings import TestSettings
from fasttrack.rules.confinement.wired import allowance

OWN_RECORD = frozenset({PathClass.MANIFESTS, PathClass.POLICY})
"""Classes that need no root: manifests (FT3xx judges them) and policy (FT119)."""
EXECUTABLE = "100755"
LOADED_SUFFIXES = frozenset({"pyc", "pyo", "so", "pyd", "dll", "dylib", "whl", "egg", "zip"})
"""Files that an import can find, or that a loader runs, without being source."""
PARSED_FILES = 40
"""Changed paths above which no edit is looked into: reading it costs more than it would save."""
PARSED_BYTES = 256 * 1024
"""Bytes of a Python file that is looked into."""


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
        "it, the empty `__init__.py` of a new folder, or a test that comes in addition to an "
        "existing test file that is otherwise left alone. Comments and docstrings of Python files "
        "are documentation. Other edits of tests, helpers that they could import, and the "
        "reference are outside: whoever edits what judges a kernel needs a reader."
    )
    why = (
        "Evidence speaks about the governed units only. A line outside them can change what every "
        "other path of the engine does, and nothing in the scope would show it."
    )
    blind = (
        "What code inside the roots does to code outside them at run time, which FT2xx looks at, "
        "and what the functions that a new test calls do to other tests."
    )
    fix = "move the edit into the roots, or send it as a change of its own for ordinary review"

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
    if _weakens_nothing(case, entry, path_class):
        return None
    return f"a change to a `{path_class.value}` path outside every root"


def _weakens_nothing(case: Case, entry: Entry, path_class: PathClass) -> bool:
    """Whether a Python file gets new comments and nothing else, or new tests and nothing else."""
    if not _is_looked_into(case, entry):
        return False
    old, new = text_of(case, entry.old), text_of(case, entry.new)
    if old is None or new is None:
        return False
    if path_class is PathClass.TESTS and _is_named_test(entry) and only_gains_tests(old, new):
        return True
    return is_same_program(old, new)


def _is_looked_into(case: Case, entry: Entry) -> bool:
    """Whether an edit is of Python, small enough, and of the file as the target branch has it.

    Where the target branch has edited the file meanwhile, the merge mixes both edits.
    """
    return (
        is_python(entry.path)
        and is_regular(entry.old)
        and is_regular(entry.new)
        and not entry.mode_changed
        and len(case.entries) <= PARSED_FILES
        and max(case.change.size(entry.old), case.change.size(entry.new)) <= PARSED_BYTES
        and case.change.base.get(entry.path) == entry.old
    )


def _is_named_test(entry: Entry) -> bool:
    stem = fold(entry.path).rpartition("/")[2].rpartition(".")[0]
    return stem.startswith("test_") or stem.endswith("_test")


def _is_new_test(case: Case, entry: Entry) -> bool:
    """Whether an added file is a test or its data, which no other test can come to run."""
    name = fold(entry.path).rpartition("/")[2]
    suffix = name.rpartition(".")[2]
    if _is_named_test(entry):
        return True
    if TestSettings.listing.holds(entry.path):
        return True  # FT122 reports it
    if (
        name == "__init__.py"
        and (text := text_of(case, entry.new)) is not None
        and not text.strip()
    ):
        return not case.change.base.has_folder(entry.path.rpartition("/")[0])
    return not is_program(case, entry) and suffix not in LOADED_SUFFIXES
