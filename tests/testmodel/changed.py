# SPDX-License-Identifier: Apache-2.0
"""What a change of some files of the host project takes from its tests."""

from collections.abc import Mapping
from dataclasses import replace

from fasttrack.testmodel.weakened import weakenings
from fasttrack.testmodel.weakening import Kind
from tests.meaning.corpus import Made, project
from tests.meaning.judged import MemoryChange, case_of


def taken(base: Mapping[str, str], head: Mapping[str, str | None]) -> set[Kind]:
    """Kinds of what a change takes.

    Args:
        base: files that the target branch has besides the project's.
        head: files after the change; None where one is gone.
    """
    files = {**project(), **base}
    after = {path: text for path, text in {**files, **head}.items() if text is not None}
    case = replace(case_of(Made(files, {})), change=MemoryChange(files, after))
    return {found.kind for found in weakenings(case)}
