# SPDX-License-Identifier: Apache-2.0
"""The gate of the prepared operators: cells of the manifest, features, model, planned steps.

A cell of `refusal` is a point past one bound. Past a bound of a whole server the start is refused;
past a bound of single steps it is refused where the decode path could plan such a step. A cell of
`kernel-test` draws deployments around what the region holds, and an answer that is written here a
second time must be the gate's.
"""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import yaml

from fasttrack.errors import InputError
from fasttrack.manifest.cells import Cell
from fasttrack.manifest.model import Refusal, Region, Requests
from fasttrack.manifest.words import Status
from fasttrack.pytest_plugin import Recorder
from fasttrack.vocabulary import Kind, Tier
from kimi_k3.config import full, mini
from kimi_k3.decode.deployment import Deployment, Features, Formats
from kimi_k3.decode.packaged import packaged_manifest
from kimi_k3.decode.plan import Plan, Planner, RowCounts
from kimi_k3.decode.scope import Admission, Gate, admit, largest_step
from kimi_k3.mini import scope
from kimi_k3.mini.scope import OperatorsRefused, admit_operators, packaged_gate, planned_steps
from kimi_k3.step import Group, StepShape
from kimi_k3.step import Kind as StepKind
from tests.kimi_k3.decode.deployments import at

from .cells import MANIFEST, REGION, ROOT, of_unit, owed
from .deployments import SOUND, drawn, may_run

WORDS: Mapping[str, Any] = yaml.safe_load(
    (ROOT / "tests/cases/decode/refusal_words.yaml").read_text("utf-8")
)
REGIONS = {region.id: region for region in MANIFEST.scope}
HERE = REGIONS[REGION]
REFUSALS = owed(Kind.REFUSAL)
PLANNED = next(region for region in packaged_manifest().scope if region.id == "cpu-virtual-tp1")
"""Bounds of planned steps, whatever the tensor parallelism."""
OF_A_STEP = ("requests.max", "rows_max", "context_max")
"""Bounds of single steps; a server may take in more, and the planner leaves them to `auto`."""


def past(cell: Cell) -> Deployment:
    return replace(at(cell.values), config=mini(), domains=())


def path_of(deployment: Deployment, **bounds: Any) -> Admission:
    """An admission of the decode path whose region plans steps within other bounds."""
    return Admission(deployment.decode_backend, PLANNED.model_copy(update=bounds))


@cache
def todays_gate() -> Gate:
    """The gate of this checkout."""
    return packaged_gate()


def reasons(deployment: Deployment, path: Admission | None = None) -> tuple[str, ...]:
    with pytest.raises(OperatorsRefused) as caught:
        admit_operators("prepared", deployment, path or path_of(deployment), todays_gate())
    assert caught.value.lines()[0] == (
        "decode_operators prepared is refused; decode_operators reference runs here"
    )
    return caught.value.reasons


def words(cell: Cell) -> str:
    """The reason that the region must give for its bound."""
    bound, values = str(cell.values["bound"]), cell.values
    if bound == "ranks":
        return str(WORDS["ranks"][values["ranks"]])
    ends = {
        "rows_max": {"high": HERE.rows_max},
        "requests.max": {"low": HERE.requests.min, "high": HERE.requests.max},
        "context_max": {"high": HERE.context_max},
    }
    listed = {
        **{name: getattr(HERE.dtypes, name) for name in type(HERE.dtypes).model_fields},
        "graph_mode": HERE.graph_modes,
    }
    among = () if bound in ends else listed.get(bound) or getattr(HERE, bound)
    admitted = {"admitted": ", ".join(map(str, among))}
    return str(WORDS[bound].format(**values, **ends.get(bound, admitted)))


def wide_path(cell: Cell) -> Admission:
    """A decode path that plans the cell's step: nothing of it lies outside there."""
    values = cell.values
    most = max(int(values["requests"]), HERE.requests.max)
    return path_of(
        past(cell),
        requests=Requests(min=1, max=most),
        rows_max=max(int(values["rows"]), HERE.rows_max),
        context_max=max(int(values["context"]), HERE.context_max),
    )


def check_refusal(cell: Cell, record: Recorder) -> None:
    """Region and start refuse the cell, with the words for its bound."""
    deployment, want = past(cell), words(cell)
    answer = next(
        a for a in todays_gate().answers(largest_step(deployment)) if a.region == cell.region
    )
    said = (*answer.outside, *answer.below)
    assert want in said
    record.answered(refused=not answer.admits, reasons=said)
    refused = reasons(deployment, wide_path(cell))
    assert any(want in reason for reason in refused), refused
    if cell.values["bound"] in OF_A_STEP:
        # The decode path of today plans no such step, so that it does not keep the server out.
        admit_operators("prepared", deployment, path_of(deployment))


def check_answers(tp: int, seeds: Sequence[int], record: Recorder) -> None:
    """The gate admits exactly what the second formulation does."""
    seen = set()
    for seed in seeds:
        for deployment in drawn(seed, tp):
            seen.add(may_run(deployment))
            record.launched("gate")
            if may_run(deployment):
                path = path_of(deployment)
                got = admit_operators("prepared", deployment, path, todays_gate())
                assert (got.backend, got.region) == (path.backend, path.region)
            else:
                assert reasons(deployment)
    assert seen == {True, False}


CELLS = [*of_unit("gate"), *(cell.values for cell in REFUSALS)]


def name_of(values: Mapping[str, Any]) -> str:
    if "bound" not in values:
        return f"answers-tp{values['tensor_parallel']}"
    step = f"{values['requests']}x{1 + int(values['draft_tokens'])}"
    other = {"requests.max": step, "rows_max": step, "context_max": values["context"]}
    bound = str(values["bound"])
    return f"{bound}-{other.get(bound, values.get(bound))}"


@pytest.mark.fasttrack_cells(*CELLS, ids=name_of)
def test_the_gate_answers(
    fasttrack_cell: Mapping[str, Any], fasttrack_seeds: Sequence[int], fasttrack_record: Recorder
) -> None:
    if "bound" not in fasttrack_cell:
        check_answers(int(fasttrack_cell["tensor_parallel"]), fasttrack_seeds, fasttrack_record)
        return
    cell = next(cell for cell in REFUSALS if cell.values == fasttrack_cell)
    check_refusal(cell, fasttrack_record)


def test_every_bound_has_a_cell_and_every_cell_its_own_name() -> None:
    assert len({name_of(values) for values in CELLS}) == len(CELLS)
    assert {cell.values["bound"] for cell in REFUSALS} == set(WORDS) - {"requests.min"}


@pytest.mark.parametrize("refusal", MANIFEST.refuses, ids=lambda refusal: refusal.probe)
def test_a_feature_that_is_on_or_unknown_is_refused_and_nothing_else(refusal: Refusal) -> None:
    def said(on: bool | None) -> tuple[str, ...]:
        features = replace(Features.absent(), **{refusal.feature: on})
        return reasons(replace(SOUND, features=features))

    (on,) = said(True)
    assert on.startswith(f"{refusal.feature} is on; ")
    assert said(None) == (f"could not tell whether {refusal.feature} is on",)


def test_a_sound_deployment_is_admitted_and_every_result_says_so() -> None:
    path = admit(SOUND)
    got = admit_operators("prepared", SOUND, path)
    effective = packaged_gate().effective.get(REGION, Tier.DECLARED)
    assert got.notes == (
        *path.notes,
        f"decode_operators prepared: region cpu of kimi-k3-mini, effective tier {effective}",
    )
    assert replace(got, notes=path.notes) == path


def test_the_default_takes_everything_and_says_nothing() -> None:
    for deployment in (SOUND, replace(SOUND, config=full(), tp=16, virtual_ranks=False)):
        path = Admission("auto")
        assert admit_operators("reference", deployment, path) is path


def test_operators_without_planned_steps_and_unknown_values_are_errors() -> None:
    with pytest.raises(InputError, match="prepared with decode_backend auto, which plans no steps"):
        admit_operators("prepared", SOUND, Admission("auto"))
    with pytest.raises(InputError, match="saw 'fused'; want reference or prepared"):
        admit_operators("fused", SOUND, admit(SOUND))


def test_everything_that_is_not_known_is_a_reason() -> None:
    unknown = replace(
        SOUND,
        config=None,
        hardware=None,
        tp=None,
        dcp=None,
        max_requests=None,
        draft_tokens=None,
        max_context=None,
        graph_mode=None,
        formats=Formats(None, None, None, None, None),
        features=Features(),
    )
    said = reasons(unknown)
    facts, features, model = 12, len(MANIFEST.refuses), 1
    assert len([line for line in said if line.startswith("could not tell")]) == (
        facts + features + model
    )


def test_another_model_is_refused_by_its_shapes() -> None:
    (said,) = reasons(replace(SOUND, config=replace(mini(), num_experts=16)))
    assert said == "the model is not the mini one: other num_experts"


def test_a_path_that_plans_past_the_scope_is_refused_by_every_bound_at_once() -> None:
    wide = path_of(SOUND, requests=Requests(min=1, max=128), rows_max=256, context_max=1 << 20)
    said = reasons(replace(SOUND, max_context=1 << 20), wide)
    assert [line.partition(": ")[2] for line in said] == [
        "a context of 1048576 tokens exceeds 4096",
        "128 requests are not within 1 to 64",
        "128 requests x (1 + 0 draft tokens) = 128 rows exceed 64",
        "64 requests x (1 + 3 draft tokens) = 256 rows exceed 64",
    ]


def test_what_is_asked_about_bounds_every_step_that_can_be_planned() -> None:
    """Every window that a planner takes lies within the outermost steps of the same width."""
    region: Region = admit(SOUND).region or HERE
    for draft in range(8):
        deployment = replace(SOUND, draft_tokens=draft, max_context=region.context_max)
        planner = Planner(region, RowCounts(tuple(range(1, 200))), draft)
        asked = [*planned_steps(deployment, region)]
        for requests in range(1, 130):
            for rows in range(1, 10):
                shape = StepShape((Group(StepKind.WINDOW, requests, rows),), region.context_max)
                if isinstance(planner.plan(shape), Plan):
                    assert any(
                        step.draft == rows - 1 and (step.requests or 0) >= requests
                        for step in asked
                    )


@pytest.mark.parametrize("side", ["manifest", "code"])
def test_a_feature_that_only_one_side_knows_stops_the_start(side: str) -> None:
    gate = packaged_gate()
    refuses = gate.manifest.refuses
    other = refuses[0].model_copy(update={"feature": "beam_search", "probe": "beams"})
    changed = refuses[1:] if side == "code" else (*refuses, other)
    told = Gate(gate.manifest.model_copy(update={"refuses": changed}), gate.admit_tier)
    want = "sleep_mode with the probe sleep-mode not in" if side == "code" else "beams only in"
    with pytest.raises(InputError, match=want):
        admit_operators("prepared", SOUND, path_of(SOUND), told)


def test_a_suspension_stops_the_operators_and_not_the_decode_path() -> None:
    gate = packaged_gate()
    state = gate.manifest.state.model_copy(update={"status": Status.SUSPENDED, "reason": "wrong"})
    told = Gate(gate.manifest.model_copy(update={"state": state}), gate.admit_tier)
    with pytest.raises(OperatorsRefused, match="suspended since 2026-11-29: wrong"):
        admit_operators("prepared", SOUND, admit(SOUND), told)
    assert admit_operators("reference", SOUND, admit(SOUND), told).region is not None


def test_the_gate_reads_the_manifest_that_the_checker_reads() -> None:
    assert packaged_manifest(scope.MANIFEST) == MANIFEST
    assert MANIFEST.code.gate == ("kimi_k3/mini/scope.py",)


def test_the_gate_needs_no_torch() -> None:
    code = "import sys, kimi_k3.mini.scope; print({'torch', 'numpy'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
