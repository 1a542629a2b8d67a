# SPDX-License-Identifier: Apache-2.0
"""The answer of `fasttrack scope explain`: the effective tier, or every reason why not."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from fasttrack.manifest.admission import RegionAnswer
from fasttrack.report.style import Style


def answer_text(name: str, answers: Sequence[RegionAnswer], style: Style) -> str:
    """The answers of a manifest's regions for a terminal."""
    return "\n".join(_lines(name, answers, style)) + "\n"


def answer_json(name: str, answers: Sequence[RegionAnswer]) -> str:
    """The answers as JSON: sorted keys, a newline at the end."""
    record = {
        "manifest": name,
        "admitted": any(a.admits for a in answers),
        "regions": [asdict(a) for a in answers],
    }
    return json.dumps(record, indent=2, sort_keys=True) + "\n"


def _lines(name: str, answers: Sequence[RegionAnswer], style: Style) -> Iterator[str]:
    admitting = next((a for a in answers if a.admits), None)
    if admitting is not None:
        yield f"{style.paint('admitted', 'green')} by region {admitting.region} of {name}"
        yield f"  claims {admitting.claimed.value}, effective {admitting.effective.value}"
        return
    yield f"{style.paint('not admitted', 'yellow')} by {name}; the `auto` path takes such steps"
    for found in answers:
        where = "inside" if not found.outside else "outside"
        tiers = f"claims {found.claimed.value}, effective {found.effective.value}"
        yield f"  {found.region}: {where}, {tiers}"
        for reason in (*found.outside, *found.below):
            yield from style.wrapped(reason, "    - ")
