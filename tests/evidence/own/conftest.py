# SPDX-License-Identifier: Apache-2.0
"""One scratch repository for all tests that change this repository's files."""

import pytest

from .dependencies import Dependencies
from .scratch import Scratch


@pytest.fixture(scope="package")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    return Scratch(tmp_path_factory.mktemp("own"))


@pytest.fixture(scope="package")
def own(scratch: Scratch) -> Dependencies:
    return scratch.dependencies(scratch.tip)
