# SPDX-License-Identifier: Apache-2.0
"""The files that will be there after the change."""

from fasttrack.case import Case
from fasttrack.change.tree import Tree


def resulting_tree(case: Case) -> Tree:
    """The judged tree, or the head's own files when the merge conflicts (FT126 reports that).

    Raises:
        FactUnavailable: the merge can not be tried, or a tree is not in this clone.
    """
    change = case.change
    return change.head_files if change.judged_tree is None else change.judged
