# SPDX-License-Identifier: Apache-2.0
"""What depends on what after the merge, under every manifest, found once for a case."""

from collections.abc import Mapping

from fasttrack.case import Case
from fasttrack.config import judged_or_head
from fasttrack.evidence.inputs import InputGraph


def input_graphs(case: Case) -> Mapping[str, InputGraph]:
    """Path of a manifest to the inputs of its units; ask `case.once` for it."""
    change, config, tree = case.change, case.config, judged_or_head(case.change)
    return {p: InputGraph(change, tree, m, config) for p, m in case.head.valid.items()}
