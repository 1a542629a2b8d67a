# SPDX-License-Identifier: Apache-2.0
"""FT412: tests test the code itself."""

from fasttrack.rules.validation.weakening_rule import WeakeningRule
from fasttrack.testmodel.weakening import Kind


class MockedUnit(WeakeningRule):
    """Tests of a stand-in."""

    id = "FT412"
    slug = "mocked-unit"
    title = "tests test the code itself"
    refuses = (
        "An existing test that newly patches, assigns or sets an attribute of something inside "
        "the roots of a manifest, itself or by what is imported before it (`conftest.py`, "
        "`__init__.py`). It blocks where a manifest names the test and its assertions "
        "speak of the replaced object. What a module there only imports from outside the roots "
        "passes."
    )
    why = "A test of a stand-in passes whatever the kernel does."
    blind = "Stand-ins that are handed in as arguments, or put in place by code outside the tests."
    fix = "test the code itself, or add a second test for the stand-in"
    kind = Kind.MOCK
