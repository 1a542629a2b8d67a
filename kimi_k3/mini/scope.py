# SPDX-License-Identifier: Apache-2.0
"""The gate: which deployments may have prepared operators.

It holds no limit of its own. Bounds and refused features come from the packaged
`kimi-k3-mini.yaml`, the same file that `fasttrack check` enforces, the model's shapes from
`kimi_k3.config`. Prepared operators compute planned steps of the decode path, so that path must be
admitted first, by its own gate; what it may plan must then lie in the scope here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace

from fasttrack.errors import InputError, Problem
from fasttrack.manifest.admission import Question, RegionAnswer
from fasttrack.manifest.model import Region
from kimi_k3.config import K3Config, mini
from kimi_k3.decode.deployment import Deployment, Features
from kimi_k3.decode.packaged import packaged_effective, packaged_manifest, packaged_policy
from kimi_k3.decode.scope import Admission, Gate, Refused, every_step

MANIFEST = "kimi-k3-mini.yaml"
WHY: Mapping[str, str] = {
    "sleep_mode": "prepared weights are a second copy, which nothing puts to sleep",
    "lora": "an adapter would change weights that are prepared once",
    "whole_model_compile": "the host reads which requests are padding",
}
"""Features of a server that the manifest refuses, and why."""


class OperatorsRefused(Refused):
    """Prepared operators were asked for and may not run here; carries every reason."""

    def lines(self) -> tuple[str, ...]:
        """What to print: what runs here instead, then one reason a line."""
        option = "decode_operators"
        head = f"{option} {self.backend} is refused; {option} {self.fallback} runs here"
        return (head, *(f"  - {reason}" for reason in self.reasons))


def packaged_gate() -> Gate:
    """The gate of this installation.

    Raises:
        InputError: the manifest, the policy or the effective tiers are malformed; nothing is
            admitted then.
    """
    manifest = packaged_manifest(MANIFEST)
    return Gate(manifest, packaged_policy().admit_tier, packaged_effective(manifest.name))


def admit_operators(
    operators: str, deployment: Deployment, path: Admission, gate: Gate | None = None
) -> Admission:
    """Decides at startup whether the operators that were asked for may run.

    (1) The option must have a known value. (2) The default takes everything. Otherwise (3) there
    must be planned steps, (4) manifest and code must speak of the same features, (5) every fact,
    every region and every step that may be planned is asked about, and (6) one reason is enough to
    refuse, with all of them.

    Args:
        operators: value of the option `decode_operators`.
        deployment: every fact about the server.
        path: what the gate of the decode path has said to it.
        gate: what to judge by; the installation's own when None.

    Returns:
        `path`, with notes about the operators.

    Raises:
        InputError: an unknown value, no planned steps, or a manifest of other features.
        OperatorsRefused: prepared operators may not run here; with every reason.
    """
    gate = gate or packaged_gate()
    switch = gate.manifest.code.switch
    if operators not in {switch.default, switch.value}:  # (1)
        want = f"{switch.default} or {switch.value}"
        raise InputError.one(switch.option, repr(operators), want)
    if operators == switch.default:  # (2)
        return path
    if path.region is None:  # (3)
        saw = f"{operators} with decode_backend {path.backend}, which plans no steps"
        raise InputError.one(switch.option, saw, "decode_backend latency_specialized with it")
    if problems := [*_feature_problems(gate)]:  # (4)
        raise InputError(problems)
    answers = gate.answers(every_step(deployment), min_tier=deployment.decode_min_tier)
    admitting = next((answer for answer in answers if answer.admits), None)
    reasons = [  # (5)
        *(f"could not tell {name}" for name in deployment.unknown()),
        *_feature_reasons(deployment.features),
        *_model_reasons(deployment.config),
        *(_region_reasons(answers) if admitting is None else ()),
        *(_step_reasons(gate, deployment, path.region, admitting) if admitting else ()),
    ]
    if admitting is None or reasons:  # (6)
        raise OperatorsRefused(switch.value, switch.fallback, reasons)
    tier = f"region {admitting.region} of {gate.manifest.name}, effective tier"
    note = f"{switch.option} {switch.value}: {tier} {admitting.effective.value}"
    return replace(path, notes=(*path.notes, note))


def planned_steps(deployment: Deployment, region: Region) -> Iterator[Question]:
    """The outermost steps that the planner may take in a region of the decode path.

    Windows have one token or the full draft and one. Requests are those of the region, whatever
    the server takes in, because a step is padded up to a prepared size.
    """
    context = min(region.context_max, deployment.max_context or region.context_max)
    for width in sorted({1, 1 + (deployment.draft_tokens or 0)}):
        most = min(region.requests.max, region.rows_max // width)
        for requests in sorted({region.requests.min, most}):
            step = replace(every_step(deployment), requests=requests, draft=width - 1)
            yield replace(step, context=context)


def _feature_problems(gate: Gate) -> Iterator[Problem]:
    """Features that only one side knows: the gate could not keep what the manifest says."""
    where = f"{gate.manifest.name}: refuses"
    known = {(probe.feature, probe.id) for probe in Features().probes() if probe.feature in WHY}
    named = {(refusal.feature, refusal.probe) for refusal in gate.manifest.refuses}
    for feature, probe in sorted(named ^ known):
        side = "only in the manifest" if (feature, probe) in named else "not in the manifest"
        saw = f"feature {feature} with the probe {probe} {side}"
        yield Problem(where, saw, "the features that this version refuses")


def _feature_reasons(features: Features) -> Iterator[str]:
    for probe in features.probes():
        if probe.feature in WHY and probe.on is None:
            yield f"could not tell whether {probe.feature} is on"
        elif probe.feature in WHY and probe.on:
            yield f"{probe.feature} is on; {WHY[probe.feature]}"


def _model_reasons(config: K3Config | None) -> Iterator[str]:
    """Prepared weights are several times the size of packed ones: no other model is taken."""
    if config is None:
        yield "could not tell the model's shapes"
        return
    want = mini()
    other = [f.name for f in fields(want) if getattr(config, f.name) != getattr(want, f.name)]
    if other:
        more = f" and {len(other) - 1} more" if len(other) > 1 else ""
        yield f"the model is not the mini one: other {other[0]}{more}"


def _step_reasons(
    gate: Gate, deployment: Deployment, region: Region, admitting: RegionAnswer
) -> Iterator[str]:
    """Steps that the decode path may plan and the admitting region does not hold."""
    said: dict[str, None] = {}
    for step in planned_steps(deployment, region):
        answers = gate.answers(step, min_tier=deployment.decode_min_tier)
        own = next(answer for answer in answers if answer.region == admitting.region)
        said |= dict.fromkeys(own.outside)
    for reason in said:
        yield f"{region.id} of the decode path plans such steps: {reason}"


def _region_reasons(answers: Sequence[RegionAnswer]) -> Iterator[str]:
    """One line a region."""
    for answer in answers:
        yield f"{answer.region}: {'; '.join((*answer.outside, *answer.below))}"
