# SPDX-License-Identifier: Apache-2.0
"""FT122: no file that decides how tests are found, run and measured."""

from fasttrack.finding import Level
from fasttrack.rules.confinement.listed_paths import ListedPaths, Listing


class TestSettings(ListedPaths):
    """Settings of test runners, of the build, and files that Python runs unasked."""

    __test__ = False

    id = "FT122"
    slug = "test-settings"
    title = "how tests are found and run stays as it is"
    level = Level.ROUTE
    refuses = (
        "A change, in any folder, to `conftest.py`, the settings of pytest, tox, nox, coverage, "
        "linters and type checkers, the project's build files, or files that Python loads "
        "unasked (`sitecustomize.py`, `*.pth`, entry points)."
    )
    why = (
        "One line there deselects a test, turns a failure into a warning or patches the code "
        "under test, and every result still looks green."
    )
    blind = "Plug-ins that a test file names itself, and helpers that tests import."
    fix = "send it as a change of its own for ordinary review"
    false_alarms = "not measured yet"
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
                "sitecustomize.py",
                "usercustomize.py",
                "entry_points.txt",
            }
        ),
        name_patterns=("*.pth",),
    )
    noun = "a file that decides how tests run"
