# SPDX-License-Identifier: Apache-2.0
"""Signed statements and what became of them, for people and programs."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date

from fasttrack.errors import Problem
from fasttrack.evidence.store import Stored
from fasttrack.evidence.trust import Judged
from fasttrack.report.style import Style
from fasttrack.report.visible import visible


def statements_text(
    stored: Sequence[Stored], judged: Sequence[Judged], problems: Sequence[Problem], style: Style
) -> str:
    """Each statement with its reasons, then what could not be read, then how many count."""
    lines: list[str] = []
    for one, judgement in zip(stored, judged, strict=True):
        lines += _statement(one, judgement, style)
    lines += [f"{style.paint('problem', 'red')}  {visible(str(problem))}" for problem in problems]
    accepted = sum(judgement.accepted for judgement in judged)
    lines.append(f"{accepted} of {len(judged)} statements accepted")
    return "\n".join(lines) + "\n"


def statements_json(
    stored: Sequence[Stored], judged: Sequence[Judged], problems: Sequence[Problem], day: date
) -> str:
    """The same as JSON with sorted keys."""
    records = [_record(one, judgement) for one, judgement in zip(stored, judged, strict=True)]
    whole = {
        "as_of": str(day),
        "statements": records,
        "problems": [asdict(problem) for problem in problems],
    }
    return json.dumps(whole, indent=2, sort_keys=True) + "\n"


def _statement(one: Stored, judgement: Judged, style: Style) -> Iterator[str]:
    cell, predicate = one.statement.cell, one.statement.predicate
    word, colour = ("accepted", "green") if judgement.accepted else ("refused", "red")
    run = predicate.run
    told = f"{predicate.inputs.unit}  {run.finished.date()}  isolation: {run.isolation}"
    yield f"{style.paint(word, colour)}  {cell.kind.value}  {told}"
    axes = " ".join(f"{axis}={value}" for axis, value in cell.values.items())
    yield from style.wrapped(visible(axes), "  ")
    for refusal in judgement.refusals:
        yield from style.wrapped(f"{refusal.reason.value}: {visible(refusal.text)}", "  ")
    yield from style.wrapped(visible(one.source), "  in ")


def _record(one: Stored, judgement: Judged) -> dict[str, object]:
    cell, predicate = one.statement.cell, one.statement.predicate
    return {
        "source": one.source,
        "kind": cell.kind.value,
        "cell": dict(cell.values),
        "unit": predicate.inputs.unit,
        "unit_digest": predicate.inputs.digest,
        "tests_digest": predicate.inputs.tests,
        "run": predicate.run.run,
        "finished": predicate.run.finished.isoformat(),
        "isolation": predicate.run.isolation,
        "bundle": bool(one.signed.bundle),
        "keys": [signature.key_id for signature in one.signed.signatures],
        "pools": sorted(judgement.pools),
        "accepted": judgement.accepted,
        "reasons": [
            {"code": refusal.reason.value, "text": refusal.text} for refusal in judgement.refusals
        ],
    }
