# SPDX-License-Identifier: Apache-2.0
"""What stress, performance and evaluations must show beyond having passed."""

from typing import Any

import pytest

from fasttrack.evidence.predicates.common import (
    Interval,
)
from fasttrack.evidence.status import Status
from fasttrack.manifest.cells import cell
from fasttrack.manifest.points import witness_points
from fasttrack.policy.model import Bandwidth
from fasttrack.vocabulary import Kind
from tests.evidence.covering import LAB, MANIFEST_NOW, POLICY_NOW, answer, manifest, policy, told
from tests.evidence.strategies import digest, good, spread

STRESS = cell(
    Kind.STRESS, "r", {"unit": "kda", "hardware": "h200", "ranks": "real", "tensor_parallel": 2}
)
EVAL = cell(Kind.MODEL_EVAL, "h100-tp1", {"hardware": "h200", "tensor_parallel": 1})
WEIGHTS = {"weights": digest("0")}
UNSURE = Interval(low=-0.01, high=0.01, confidence=0.9)


def test_stress_needs_its_profile_iterations_and_a_device_for_each_real_rank() -> None:
    def asked(count: int = 2, **content: Any) -> str:
        content = {"seeds": (1, 2, 3), **content}
        values = dict(STRESS.values)
        made = told(Kind.STRESS, values=values, content=content, machine={"count": count})
        found = answer((made, LAB), about=STRESS)
        return "" if found.covers else f"{found.status}: {found.detail}"

    (setting,) = good(Kind.STRESS).predicate.settings  # type: ignore[union-attr]
    short = setting.model_copy(update={"iterations": 199})
    assert asked() == ""
    assert asked(1) == "wrong-device: measured on 1 devices, and real ranks need 2"
    assert asked(profile="smoke") == "below-floor: profile smoke, below evidence"
    assert asked(settings=(short,)) == "below-floor: 199 of 200 iterations of rank-skew"


@pytest.mark.parametrize(
    ("ratio", "count", "pairs", "said"),
    [
        (2.0, 1, 10, ""),
        (1.0, 1, 10, "step: a ratio of 1"),
        (2.0, 2, 10, "measured on 2 devices, not on 1"),
        (2.0, 1, 9, "9 pairs of 10 runs of the path and 10 of the baseline"),
    ],
)
def test_a_measurement_must_bear_its_claim_out_on_as_many_devices_in_one_interleaved_run(
    ratio: float, count: int, pairs: int, said: str
) -> None:
    under = policy(
        hardware=POLICY_NOW.hardware
        | {
            "h200": POLICY_NOW.hardware["h200"].model_copy(
                update={"bandwidth_tb_s": Bandwidth(peak=4.8, sustained=4.2)}
            )
        }
    )
    (about,) = witness_points(MANIFEST_NOW, Kind.PERFORMANCE, under.hardware, {})
    content = {
        "ours": spread(100.0 / ratio),
        "ratio": spread(ratio),
        "bytes_moved": 1e6,
        "pairs": pairs,
    }
    values = dict(about.values)
    made = told(
        Kind.PERFORMANCE, values=values, unit="path", content=content, machine={"count": count}
    )
    found = answer((made, LAB), about=about, under=under)
    assert found.covers == (not said)
    assert said in found.detail


@pytest.mark.parametrize(
    ("content", "tier", "said"),
    [
        ({}, "model-evaluated", ""),
        ({"samples": 499}, "model-evaluated", "499 of 500 samples"),
        ({"model": "example/mini"}, "model-evaluated", "speaks of the model example/mini"),
        ({"weights": digest("1")}, "model-evaluated", "other weights"),
        ({"baseline": "eager"}, "model-evaluated", "compares with eager, not with auto"),
        ({"drop": UNSURE}, "model-evaluated", "an interval of 90% confidence"),
        ({}, "served", "a call of the library"),
        ({"endpoint": "vllm"}, "served", ""),
    ],
)
def test_an_evaluation_is_of_this_model_against_the_fallback_and_large_enough(
    content: dict[str, Any], tier: str, said: str
) -> None:
    whole = {"model": "example/foo", **WEIGHTS, **content}
    made = told(Kind.MODEL_EVAL, values=dict(EVAL.values), unit="path", content=whole)
    found = answer((made, LAB), about=EVAL, of=manifest(tier=tier))
    assert found.status is (Status.BELOW_FLOOR if said else Status.COVERED)
    assert said in found.detail


def test_every_task_that_the_manifest_names_is_needed() -> None:
    tasks = [{"task": t, "samples_min": 500, "drop_max": 0.01} for t in ("gsm8k", "mmlu")]
    of = manifest(evidence={"evals": tasks})

    def asked(*names: str) -> Status:
        made = [
            told(
                Kind.MODEL_EVAL,
                values=dict(EVAL.values),
                unit="path",
                run=f"{place}" * 32,
                content={"model": "example/foo", **WEIGHTS, "task": name},
            )
            for place, name in enumerate(names)
        ]
        return answer(*((one, LAB) for one in made), about=EVAL, of=of).status

    assert asked("gsm8k", "mmlu") is Status.COVERED
    assert asked("gsm8k") is Status.MISSING
    assert asked("other") is Status.MISSING


# The second formulation: a decision table over what is drawn, in the order of severity.
