# SPDX-License-Identifier: Apache-2.0
"""What evidence says of the cells that a change owes; imported only where there is some."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fasttrack.case import Case
from fasttrack.config import judged_or_head
from fasttrack.errors import FactUnavailable
from fasttrack.evidence.coverage import Evidence, Terms
from fasttrack.evidence.gathered import gather, judged_evidence
from fasttrack.evidence.inputs import InputGraph
from fasttrack.evidence.owed import Owed
from fasttrack.evidence.subject import unit_of


def answered(
    case: Case, owed: Mapping[str, Sequence[Owed]], unknown: dict[str, None]
) -> Iterator[Owed]:
    """The owed cells with their answers.

    Counts what is kept at the target's tip, after the merge, and in the folder that was handed in,
    under the policy in force: a change can bring evidence, but neither a key nor a lower bar.

    Args:
        case: the change.
        owed: path of a manifest to what it asks for.
        unknown: gets a sentence for every fact that lacks.

    Raises:
        InputError: the folder that was handed in can not be read.
    """
    trees = (case.change.base, judged_or_head(case.change))
    try:
        stored = gather(case.change, trees, case.config.folder, case.evidence)
    except FactUnavailable as reason:
        unknown[f"evidence: {reason}"] = None
        stored = []
    cells = {one.cell.id for mine in owed.values() for one in mine}
    evidence = judged_evidence(stored, cells, case.policy.trust, case.as_of)
    for path, mine in owed.items():
        yield from _of_manifest(case, path, mine, evidence, unknown)


def _of_manifest(
    case: Case, path: str, owed: Sequence[Owed], evidence: Evidence, unknown: dict[str, None]
) -> Iterator[Owed]:
    manifest = case.head.valid[path]
    graph = InputGraph(case.change, judged_or_head(case.change), manifest, case.config)
    terms = Terms(case.policy, manifest, case.as_of)
    for one in owed:
        try:
            yield replace(one, answer=evidence.answer(one.cell, terms, graph.unit_inputs))
        except FactUnavailable as reason:
            unknown[f"{path}: inputs of {unit_of(one.cell)}: {reason}"] = None
            yield one
