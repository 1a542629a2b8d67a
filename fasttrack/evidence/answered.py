# SPDX-License-Identifier: Apache-2.0
"""What evidence says of the cells that a change owes; imported only where there is some."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from fasttrack.case import Case
from fasttrack.errors import FactUnavailable
from fasttrack.evidence.coverage import Evidence
from fasttrack.evidence.known import Known, known_evidence
from fasttrack.evidence.machine_code import audits_of
from fasttrack.evidence.owed import Owed
from fasttrack.evidence.statement import Bytes, bytes_of
from fasttrack.evidence.store import Stored
from fasttrack.evidence.subject import unit_of
from fasttrack.evidence.terms import Terms
from fasttrack.evidence.trust import Judged
from fasttrack.vocabulary import Kind


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
    known = case.once(known_evidence)
    if known.unknown:
        unknown[f"evidence: {known.unknown}"] = None
    asked = {one.cell.id for mine in owed.values() for one in mine}
    audits = audits_of(one.statement for one in known.about(asked))
    about = known.about(asked | audits)
    now = _bytes_now(known, owed, about)
    # Whose word it is matters for the bytes that there are: others are stale, whoever says so.
    judged = {
        stored.signed: one
        for stored, one in known.judged([s for s in about if bytes_of(s.statement) in now])
    }
    nobody = partial(Judged, accepted=False, pools=frozenset(), refusals=())
    evidence = Evidence(judged.get(s.signed) or nobody(s.statement) for s in about)
    for path, mine in owed.items():
        terms = Terms.of(case, path)
        for one in mine:
            try:
                answer = evidence.answer(one.cell, terms, known.graph(path).unit_inputs)
                yield replace(one, answer=answer)
            except FactUnavailable as reason:
                unknown[f"{path}: inputs of {unit_of(one.cell)}: {reason}"] = None
                yield one


def _bytes_now(
    known: Known, owed: Mapping[str, Sequence[Owed]], about: Sequence[Stored]
) -> frozenset[Bytes]:
    """What the units of owed cells, and of audits, are after the merge, where statements speak."""
    told = {one.statement.predicate.inputs.unit for one in about}
    audited = {
        one.statement.predicate.inputs.unit
        for one in about
        if one.statement.cell.kind is Kind.SYNC_AUDIT
    }
    found = set()
    for path, mine in owed.items():
        graph = known.graph(path)
        units = ({unit_of(one.cell) for one in mine} & told) | (audited & {*graph.units})
        for unit in units if mine else ():
            with suppress(FactUnavailable):  # whoever asks for the answer is told
                inputs = graph.unit_inputs(unit)
                found.add((unit, inputs.digest, inputs.tests_digest))
    return frozenset(found)
