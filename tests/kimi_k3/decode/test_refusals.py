# SPDX-License-Identifier: Apache-2.0
"""One test per refusal cell of the manifest, and one per feature that it refuses.

`test_refuses[REGION-BOUND-VALUE]` asks about the point just past one bound, and about the nearest
one inside. Past a bound that holds for all steps of a server the gate refuses the start; past a
bound of single steps the planner leaves the step to the stock path, and `scope explain` says why.
The cells are those that `fasttrack` derives from the manifest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from fasttrack.manifest.cells import Cell
from fasttrack.manifest.model import Refusal, Region
from fasttrack.manifest.points import witness_points
from fasttrack.pytest_plugin import Recorder
from fasttrack.vocabulary import Kind
from fasttrack.workspace import open_workspace
from kimi_k3.decode.deployment import Features
from kimi_k3.decode.plan import Fallback, Plan, Planner, Reason, RowCounts
from kimi_k3.decode.scope import Refused, admit, largest_step
from kimi_k3.step import Group, StepShape
from kimi_k3.step import Kind as StepKind

from .deployments import SOUND, at, open_gate, todays_gate

ROOT = Path(__file__).resolve().parents[3]
WORDS: Mapping[str, Any] = yaml.safe_load(
    (ROOT / "tests/cases/decode/refusal_words.yaml").read_text("utf-8")
)
WORKSPACE = open_workspace(ROOT)
MANIFEST = WORKSPACE.manifest("kimi-k3-decode")
REGIONS = {region.id: region for region in MANIFEST.scope}
CELLS = witness_points(MANIFEST, Kind.REFUSAL, WORKSPACE.config.policy.hardware, {})
FORMATS = ("weights", "activations", "kv_cache", "conv_state", "recurrent_state")
OF_A_STEP = {
    "requests.min": Reason.REQUESTS,
    "requests.max": Reason.REQUESTS,
    "rows_max": Reason.ROWS,
    "context_max": Reason.CONTEXT,
}
"""Bounds of single steps, and why the planner then declines."""
NEXT_TO = {"requests.min": "requests", "requests.max": "requests", "context_max": "context"}
"""Axes of the bounds that are not named like their axis."""


def cell_id(cell: Cell) -> str:
    """`gb300-tp8-kv_cache-fp32`: region, bound, and the value past it."""
    values, bound = cell.values, str(cell.values["bound"])
    if bound == "rows_max":
        return f"{cell.region}-rows_max-{values['requests']}x{1 + int(values['draft_tokens'])}"
    return f"{cell.region}-{bound}-{values[NEXT_TO.get(bound, bound)]}"


def admitted_by(region: Region, bound: str) -> Sequence[Any]:
    """What a region lists for the axis of a bound."""
    if bound in FORMATS:
        listed: Sequence[Any] = getattr(region.dtypes, bound)
    elif bound == "graph_mode":
        listed = region.graph_modes
    elif bound == "ranks":
        listed = (region.ranks,)
    else:
        listed = getattr(region, bound)
    return listed


def words(cell: Cell) -> list[str]:
    """Every reason that the cell's own region must give."""
    region, bound = REGIONS[cell.region], str(cell.values["bound"])
    over = WORDS["rows_max"].format(**cell.values, high=region.rows_max)
    if bound == "ranks":
        return [WORDS["ranks"][cell.values["ranks"]]]
    if bound == "rows_max":
        return [over]
    ends: dict[str, object]
    if bound.startswith("requests."):
        ends = {"low": region.requests.min, "high": region.requests.max}
    elif bound == "context_max":
        ends = {"high": region.context_max}
    else:
        ends = {"admitted": ", ".join(map(str, admitted_by(region, bound)))}
    # More requests than any step may have are also more rows than any step may have.
    also = [over] if int(cell.values["rows"]) > region.rows_max else []
    return [WORDS[bound].format(**cell.values, **ends), *also]


def nearest_inside(cell: Cell) -> dict[str, Any]:
    """The cell's point with the value past the bound replaced by the nearest that is admitted."""
    region, bound, values = REGIONS[cell.region], str(cell.values["bound"]), dict(cell.values)
    if bound == "rows_max":
        values["requests"] = region.rows_max // (1 + int(values["draft_tokens"]))
    elif bound == "requests.min":
        values["requests"] = region.requests.min
    elif bound == "requests.max":
        values["requests"] = region.requests.max
    elif bound == "context_max":
        values["context"] = region.context_max
    else:
        past = values[bound]
        listed = admitted_by(region, bound)
        values[bound] = (
            min(listed, key=lambda v: abs(v - int(past))) if isinstance(past, int) else listed[0]
        )
    return values


def planned(region: str, values: Mapping[str, Any]) -> Plan | Fallback:
    """What the planner says to a step of that many requests, tokens and context."""
    requests, draft = int(values["requests"]), int(values["draft_tokens"])
    rows = RowCounts(graph_sizes=(requests * (1 + draft),))
    group = Group(StepKind.WINDOW, requests, 1 + draft)
    return Planner(REGIONS[region], rows, draft).plan(StepShape((group,), int(values["context"])))


def cell_of(values: Mapping[str, Any]) -> Cell:
    """The refusal cell with these values."""
    return next(cell for cell in CELLS if cell.values == values)


@pytest.mark.fasttrack_cells(
    *(cell.values for cell in CELLS), ids=lambda values: cell_id(cell_of(values))
)
def test_refuses(fasttrack_cell: Mapping[str, Any], fasttrack_record: Recorder) -> None:
    cell = cell_of(fasttrack_cell)
    deployment, expected = at(cell.values), words(cell)
    answers = {a.region: a for a in open_gate().answers(largest_step(deployment))}
    answer = answers[cell.region]
    assert [*answer.outside, *answer.below] == expected
    fasttrack_record.answered(refused=not answer.admits, reasons=tuple(expected))

    bound = str(cell.values["bound"])
    if bound in OF_A_STEP:
        assert planned(cell.region, cell.values) == Fallback(OF_A_STEP[bound])
        assert isinstance(planned(cell.region, nearest_inside(cell)), Plan)
        return
    for gate in (open_gate(), todays_gate()):
        with pytest.raises(Refused) as caught:
            admit(deployment, gate)
        assert caught.value.lines()[0].endswith("decode_backend auto runs here")
        for reason in expected:
            assert any(reason in line for line in caught.value.reasons), reason

    inside = admit(at(nearest_inside(cell)), open_gate())
    assert inside.region is not None
    assert inside.region.id == cell.region


def test_every_cell_has_an_id_of_its_own() -> None:
    assert len({cell_id(cell) for cell in CELLS}) == len(CELLS) > 200


def test_every_bound_of_a_cell_has_its_words() -> None:
    """`requests.min` has no cell while every region starts at one request."""
    assert WORDS.keys() - {"requests.min"} == {cell.values["bound"] for cell in CELLS}


@pytest.mark.parametrize("refusal", MANIFEST.refuses, ids=lambda refusal: refusal.probe)
def test_refuses_a_feature_that_is_on_or_unknown_and_nothing_else(refusal: Refusal) -> None:
    def reasons(on: bool | None) -> tuple[str, ...]:
        features = replace(Features.absent(), **{refusal.feature: on})
        with pytest.raises(Refused) as caught:
            admit(replace(SOUND, features=features), open_gate())
        assert "decode_backend auto runs here" in str(caught.value)
        return caught.value.reasons

    (on,) = reasons(True)
    assert on.startswith(f"{refusal.feature} is on; ")
    assert reasons(None) == (f"could not tell whether {refusal.feature} is on",)
    assert admit(SOUND, open_gate()).region is not None
