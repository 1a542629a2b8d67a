# SPDX-License-Identifier: Apache-2.0
"""FT122: no file that decides how tests are found, run and measured."""

import re
from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.finding import Finding, Level
from fasttrack.rules.confinement.listed_paths import ListedPaths, Listing
from fasttrack.rules.confinement.readable import added_text, is_python

_PLUGINS = re.compile(r"\bpytest_plugins\b")


class TestSettings(ListedPaths):
    """Settings of test runners and of the build."""

    __test__ = False

    id = "FT122"
    slug = "test-settings"
    title = "how tests are found and run stays as it is"
    level = Level.ROUTE
    refuses = (
        "A change, in any folder, to `conftest.py`, the settings of pytest, tox, nox, coverage, "
        "linters and type checkers, or the project's build files; and an added line of any Python "
        "file that names `pytest_plugins`. Files that Python loads unasked are FT218's."
    )
    why = (
        "One line there deselects a test, turns a failure into a warning or patches the code "
        "under test, and every result still looks green."
    )
    blind = "Names that a test file computes, and what it patches when it is imported."
    fix = "send it as a change of its own for ordinary review"
    listing = Listing(
        names=frozenset(
            {
                "conftest.py",
                "pytest.ini",
                ".pytest.ini",
                "pytest.toml",
                ".pytest.toml",
                "tox.ini",
                "tox.toml",
                "noxfile.py",
                "setup.cfg",
                "setup.py",
                "pyproject.toml",
                "hatch.toml",
                "pdm.toml",
                "uv.toml",
                ".coveragerc",
                "mypy.ini",
                ".mypy.ini",
                "ruff.toml",
                ".ruff.toml",
                ".flake8",
                ".pylintrc",
                "pylintrc",
                "pyrightconfig.json",
                ".importlinter",
            }
        ),
    )
    noun = "a file that decides how tests run"

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Reports one path that is listed, or a file that loads plug-ins into the whole run."""
        yield from super().check_entry(case, entry)
        if self.listing.holds(entry.path) or not is_python(entry.path):
            return
        lines = [line for line in added_text(case, entry) if _PLUGINS.search(line.text)]
        if lines:
            yield self.finding(
                path=entry.path,
                line=lines[0].number,
                saw="a file that names plug-ins of the test runner",
                want="tests that change no other test's run",
                content="\n".join(line.text for line in lines),
            )
