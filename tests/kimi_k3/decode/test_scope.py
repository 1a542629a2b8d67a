# SPDX-License-Identifier: Apache-2.0
"""The gate and the checker read the same manifest and answer alike; startup gives every reason."""

import json
import subprocess
import sys
from dataclasses import fields, replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.errors import InputError
from fasttrack.manifest.model import Manifest
from fasttrack.manifest.words import Ranks, Status
from fasttrack.vocabulary import Tier
from fasttrack.workspace import open_workspace
from kimi_k3.config import full, mini, tiny16
from kimi_k3.decode import packaged
from kimi_k3.decode.deployment import Deployment, Features, Formats
from kimi_k3.decode.nvlink import NvlinkDomain
from kimi_k3.decode.packaged import packaged_manifest, packaged_policy
from kimi_k3.decode.scope import MIN_TIERS, Gate, Refused, admit, largest_step

from .deployments import (
    DOMAIN,
    SOUND,
    SPECIALISED,
    VIRTUAL,
    everywhere,
    open_gate,
    todays_gate,
)

ROOT = Path(__file__).resolve().parents[3]
NOTHING_KNOWN = Deployment(
    SPECIALISED,
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


def reasons(deployment: Deployment, gate: Gate | None = None) -> tuple[str, ...]:
    with pytest.raises(Refused) as caught:
        admit(deployment, gate or open_gate())
    return caught.value.reasons


def gate_at(tier: Tier, admit_tier: Tier = Tier.STRESS_TESTED) -> Gate:
    """A gate whose evidence bears out one tier."""
    manifest = open_gate().manifest
    return Gate(manifest, admit_tier, everywhere(tier, manifest))


def with_state(status: Status) -> Manifest:
    manifest = open_gate().manifest
    update = {"status": status, "since": date(2026, 12, 24), "reason": "wrong logits at 33 rows"}
    return manifest.model_copy(update={"state": manifest.state.model_copy(update=update)})


def test_the_gate_reads_the_manifest_and_the_policy_that_the_checker_reads() -> None:
    workspace = open_workspace(ROOT)
    policy = workspace.config.policy
    assert packaged_manifest() == workspace.manifest("kimi-k3-decode")
    assert todays_gate().admit_tier is policy.admit_tier
    found = {known.gpu: key for key, known in policy.hardware.items()}
    assert {gpu: packaged_policy().hardware_id(gpu) for gpu in found} == found
    assert packaged_policy().hardware_id("NVIDIA A100-SXM4-80GB") == "NVIDIA A100-SXM4-80GB"


def test_the_gate_reads_the_effective_tiers_that_were_packaged_for_its_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packaged, "_path", lambda name: tmp_path / name)
    assert packaged.packaged_effective("foo") == {}
    written = {
        "as_of": "2026-11-29",
        "manifests": {"foo": {"r": "kernel-tested"}},
        "tree": "0" * 40,
    }
    (tmp_path / "effective.json").write_text(json.dumps(written))
    assert packaged.packaged_effective("foo") == {"r": Tier.KERNEL_TESTED}
    assert packaged.packaged_effective("other") == {}
    for broken in ("{", '{"manifests": {"foo": {"r": "best"}}}', "[]"):
        (tmp_path / "effective.json").write_text(broken)
        with pytest.raises(InputError, match=r"effective\.json"):
            packaged.packaged_effective("foo")


def test_an_installation_reads_what_it_was_built_with_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "kimi_k3"
    beside = tmp_path / "manifests"
    beside.mkdir()
    (beside / packaged.EFFECTIVE).write_text('{"manifests": {"foo": {"r": "served"}}}')
    monkeypatch.setattr(packaged, "files", lambda _: installed)
    monkeypatch.setattr(packaged, "__file__", str(installed / "decode" / "packaged.py"))
    assert packaged.packaged_effective("foo") == {"r": Tier.SERVED}  # a checkout
    (installed / "manifests").mkdir(parents=True)
    assert packaged.packaged_effective("foo") == {}
    with pytest.raises(FileNotFoundError):
        packaged_manifest()


def test_a_region_of_which_nothing_is_said_is_declared() -> None:
    manifest = open_gate().manifest
    tiers = {r.id: Tier.SERVED for r in manifest.scope if r.id != "gb300-tp16"}
    said = reasons(SOUND, Gate(manifest, Tier.STRESS_TESTED, tiers))
    assert "gb300-tp16: gb300: declared, never executed; admitted from stress-tested" in said


def test_a_sound_deployment_is_admitted_by_its_region() -> None:
    admission = admit(SOUND, open_gate())
    assert admission.region is not None
    assert (admission.region.id, admission.effective) == ("gb300-tp16", Tier.SERVED)
    assert admission.lines() == (
        "decode_backend latency_specialized: region gb300-tp16, effective tier served",
    )


def test_today_a_deployment_is_refused_because_nothing_has_been_executed() -> None:
    assert "gb300-tp16: gb300: declared, never executed; admitted from stress-tested" in reasons(
        SOUND, todays_gate()
    )


def test_compiled_kernels_have_never_been_executed() -> None:
    said = reasons(SOUND, gate_at(Tier.COMPILED))
    assert "gb300-tp16: gb300: compiled, never executed; admitted from stress-tested" in said


@given(
    claimed=st.sampled_from(Tier), effective=st.sampled_from(Tier), admit_tier=st.sampled_from(Tier)
)
def test_the_lower_of_claim_and_evidence_must_reach_the_tier(
    claimed: Tier, effective: Tier, admit_tier: Tier
) -> None:
    regions = [r.model_copy(update={"tier": claimed}) for r in open_gate().manifest.scope]
    manifest = open_gate().manifest.model_copy(update={"scope": tuple(regions)})
    order = list(Tier)
    reached = min(order.index(claimed), order.index(effective))
    gate = Gate(manifest, admit_tier, everywhere(effective, manifest))
    if reached >= order.index(admit_tier):
        assert admit(SOUND, gate).effective is order[reached]
    else:
        assert any(f"admitted from {admit_tier.value}" in line for line in reasons(SOUND, gate))


def test_auto_never_refuses() -> None:
    unknown = replace(NOTHING_KNOWN, decode_backend="auto")
    for gate in (open_gate(), todays_gate(), Gate(with_state(Status.REVOKED), Tier.SERVED)):
        admission = admit(unknown, gate)
        assert (admission.backend, admission.region, admission.notes) == ("auto", None, ())


@pytest.mark.parametrize("value", ["", "fast", "AUTO", "latency-specialized"])
def test_an_unknown_backend_fails_with_both_known_ones(value: str) -> None:
    with pytest.raises(InputError) as caught:
        admit(replace(SOUND, decode_backend=value), open_gate())
    assert str(caught.value) == f"decode_backend: saw {value!r}; want auto or latency_specialized"


@pytest.mark.parametrize("value", ["declared", "tested", ""])
def test_an_unknown_least_tier_fails_with_the_known_ones(value: str) -> None:
    """`declared` among them: it is a claim that nothing stands behind."""
    with pytest.raises(InputError) as caught:
        admit(replace(SOUND, decode_min_tier=value), open_gate())
    known = "compiled, kernel-tested, stress-tested, model-evaluated, served"
    assert str(caught.value) == f"decode_min_tier: saw {value!r}; want one of {known}"


@pytest.mark.parametrize("tier", MIN_TIERS)
def test_a_tier_of_virtual_ranks_is_bad_input_and_not_ignored(tier: Tier) -> None:
    """Whatever gate is asked, and at the start whichever backend is."""
    asked = replace(VIRTUAL, decode_min_tier=tier.value)
    gate, step = open_gate(), largest_step(asked)
    for ask in (
        lambda: admit(asked, gate),
        lambda: admit(replace(asked, decode_backend="auto"), gate),
        lambda: gate.answers(step, min_tier=tier.value),
        lambda: gate.notes(virtual_ranks=True, min_tier=tier.value),
    ):
        with pytest.raises(InputError) as caught:
            ask()
        assert str(caught.value) == (
            f"decode_min_tier: saw '{tier.value}' with virtual ranks; want none with them: nothing "
            "is served, so that they are admitted from declared; fix: leave out the tier "
            "(--min-tier), or the virtual ranks (--virtual-ranks)"
        )


def test_an_unknown_tier_of_virtual_ranks_is_one_problem() -> None:
    with pytest.raises(InputError) as caught:
        admit(replace(VIRTUAL, decode_min_tier="fast"), open_gate())
    (problem,) = caught.value.problems
    assert problem.want.startswith("one of compiled")


def test_the_operator_may_lower_the_tier_and_every_result_says_so() -> None:
    admission = admit(replace(SOUND, decode_min_tier="compiled"), gate_at(Tier.COMPILED))
    assert admission.lines() == (
        "decode_backend latency_specialized: region gb300-tp16, effective tier compiled",
        "decode_min_tier compiled: below the policy's stress-tested, on the operator's own account",
    )


def test_the_operator_may_raise_the_tier_without_a_note() -> None:
    higher = replace(SOUND, decode_min_tier="served")
    assert admit(higher, gate_at(Tier.SERVED)).notes == ()
    said = reasons(higher, gate_at(Tier.STRESS_TESTED))
    assert "gb300-tp16: gb300: stress-tested, not enough; admitted from served" in said


@pytest.mark.parametrize("status", [Status.SUSPENDED, Status.REVOKED])
@pytest.mark.parametrize("deployment", [SOUND, VIRTUAL], ids=["real", "virtual"])
def test_a_path_that_may_not_run_says_why_and_says_it_once(
    status: Status, deployment: Deployment
) -> None:
    manifest = with_state(status)
    gate = Gate(manifest, Tier.STRESS_TESTED, everywhere(Tier.SERVED, manifest))
    said = reasons(deployment, gate)
    why = f"{status.value} since 2026-12-24: wrong logits at 33 rows"
    assert said[0] == why
    assert sum(why in reason for reason in said) == 1


def test_nothing_known_is_refused_fact_by_fact() -> None:
    assert reasons(NOTHING_KNOWN) == (
        *(f"could not tell {name}" for name in NOTHING_KNOWN.unknown()),
        *(f"could not tell whether {one.name} is on" for one in fields(Features)),
        "could not tell the model's shapes",
    )


@pytest.mark.parametrize("fact", list(NOTHING_KNOWN.unknown())[:7])
def test_one_unknown_fact_is_refused_and_is_the_only_reason(fact: str) -> None:
    assert reasons(replace(SOUND, **{fact: None})) == (f"could not tell {fact}",)  # type: ignore[arg-type]


def test_every_reason_is_given_not_only_the_first() -> None:
    said = "\n".join(
        reasons(
            replace(
                SOUND,
                config=mini(),
                dcp=3,
                draft_tokens=8,
                graph_mode="eager",
                formats=Formats("int4", "fp16", "int8", "fp32", "bf16"),
                features=replace(Features.absent(), lora=True, sleep_mode=None),
                domains=(DOMAIN,) * 15,
            ),
            todays_gate(),
        )
    )
    for words in (
        *("dcp 3 is", "draft 8 is"),
        *("weights int4", "activations fp16", "kv_cache int8", "conv_state fp32"),
        *("recurrent_state bf16", "graph_mode eager", "lora is on", "whether sleep_mode is on"),
        *("not the published Kimi K3", "the NVLink domain of ranks 15", "gb300: declared, never"),
    ):
        assert words in said, words


def test_a_server_larger_than_a_region_starts_and_says_which_steps_run_on_auto() -> None:
    admission = admit(replace(SOUND, max_requests=256, max_context=2**21), open_gate())
    assert admission.region is not None
    assert admission.notes == (
        "steps of more than 8 requests run on auto; this server takes up to 256",
        "steps with a request longer than 1048576 tokens run on auto; this server takes up to "
        "2097152",
    )
    assert admit(SOUND, open_gate()).notes == ()


def test_each_region_has_one_line_and_names_what_it_lists() -> None:
    said = reasons(replace(SOUND, hardware="h100", draft_tokens=1))
    regions = [region.id for region in packaged_manifest().scope]
    assert [line.partition(":")[0] for line in said] == regions
    assert said[1] == "gb300-tp16: gpu h100 is not one of gb300"


def test_another_model_is_refused_on_devices() -> None:
    (reason,) = reasons(replace(SOUND, config=replace(full(), num_experts=512)))
    assert reason == "the model is not the published Kimi K3: other num_experts"
    (reason,) = reasons(replace(SOUND, config=mini()))
    assert reason.startswith("the model is not the published Kimi K3: other hidden_size, ")
    differ = [f.name for f in fields(full()) if getattr(mini(), f.name) != getattr(full(), f.name)]
    assert reason.endswith(f" and {len(differ) - 3} more")


def test_ranks_in_two_domains_are_refused() -> None:
    apart = (*SOUND.domains[:15], NvlinkDomain(DOMAIN.cluster, DOMAIN.clique + 1))
    (reason,) = reasons(replace(SOUND, domains=apart))
    assert reason.startswith("the ranks lie in 2 NVLink domains: ranks 0, 1, ")


@pytest.mark.parametrize(("tp", "asked"), [(1, False), (2, True), (16, True)])
def test_the_domain_is_asked_of_several_devices_only(tp: int, asked: bool) -> None:
    deployment = replace(SOUND, tp=tp, domains=())
    unknown = f"could not tell the NVLink domain of ranks {', '.join(map(str, range(tp)))}"
    assert (unknown in reasons(deployment, todays_gate())) is asked
    virtual = replace(deployment, virtual_ranks=True)
    assert not any("NVLink" in reason for reason in reasons(virtual, todays_gate()))


def test_on_a_cpu_every_reason_is_given_and_auto_is_named() -> None:
    with pytest.raises(Refused) as caught:
        admit(replace(VIRTUAL, virtual_ranks=False, config=mini()))
    head, *rest = caught.value.lines()
    assert head == "decode_backend latency_specialized is refused; decode_backend auto runs here"
    assert rest == [f"  - {reason}" for reason in caught.value.reasons]
    assert len(rest) == 1 + len(packaged_manifest().scope)


@pytest.mark.parametrize("tp", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("shared", [False, True], ids=["dcp 1", "dcp tp"])
def test_virtual_ranks_are_admitted_today_and_every_result_says_so(tp: int, shared: bool) -> None:
    deployment = replace(VIRTUAL, tp=tp, dcp=tp if shared else 1, config=tiny16())
    admission = admit(deployment)
    assert admission.region is not None
    assert admission.region.id == f"cpu-virtual-tp{tp}"
    virtual, model = admission.notes
    assert virtual == (
        "virtual ranks: one device, not a deployment; admitted from tier declared, because "
        "nothing is served"
    )
    assert model.startswith("another model than Kimi K3 (other hidden_size, ")
    assert model.endswith("): shows nothing about Kimi K3")


def test_virtual_ranks_with_the_shapes_of_the_model_have_one_note() -> None:
    deployment = replace(VIRTUAL, hardware="h200", tp=8, graph_mode="full")
    admission = admit(deployment)
    assert admission.region is not None
    assert (admission.region.id, len(admission.notes)) == ("h200-virtual-tp8", 1)


@given(
    tp=st.sampled_from([1, 2, 4, 8, 16, 32]),
    dcp=st.sampled_from([1, 2, 8, 16]),
    requests=st.integers(1, 70),
    draft=st.integers(0, 9),
    context=st.sampled_from([1, 4096, 4097, 131_072, 131_073, 1_048_576, 1_048_577]),
    hardware=st.sampled_from(["cpu", "gb300", "h200", "b200"]),
    graph_mode=st.sampled_from(["eager", "piecewise", "full"]),
    virtual=st.booleans(),
)
def test_the_gate_admits_exactly_the_product_and_a_step_of_it_the_part_cut_by_rows(
    tp: int,
    dcp: int,
    requests: int,
    draft: int,
    context: int,
    hardware: str,
    graph_mode: str,
    virtual: bool,
) -> None:
    deployment = replace(
        SOUND,
        hardware=hardware,
        tp=tp,
        dcp=dcp,
        max_requests=requests,
        draft_tokens=draft,
        max_context=context,
        graph_mode=graph_mode,
        domains=(DOMAIN,) * tp,
        virtual_ranks=virtual,
    )
    # Written from the design: devices of one GB300 domain, and virtual ranks on what we have.
    places = {
        ("gb300", False): ({8, 16}, 1_048_576, "full"),
        ("h200", True): ({8, 16}, 131_072, "full"),
        ("cpu", True): ({1, 2, 4, 8, 16}, 4096, "eager"),
    }
    tps, longest, mode = places.get((hardware, virtual), (set(), 0, ""))
    inside = tp in tps and dcp in {1, tp} and draft <= 7 and graph_mode == mode
    if inside:
        region = admit(deployment, open_gate()).region
        assert region is not None
        assert (region.ranks is Ranks.VIRTUAL, region.tensor_parallel) == (virtual, (tp,))
        answers = open_gate().answers(largest_step(deployment))
        fits = requests * (1 + draft) <= 64 and context <= longest
        assert any(answer.admits for answer in answers) == fits
    else:
        assert reasons(deployment)


@pytest.mark.parametrize("missing", ["manifest", "code"])
def test_a_probe_that_only_one_side_knows_stops_the_start(missing: str) -> None:
    manifest = open_gate().manifest
    lora = next(refusal for refusal in manifest.refuses if refusal.feature == "lora")
    if missing == "manifest":
        changed = tuple(refusal for refusal in manifest.refuses if refusal is not lora)
        want = "saw no feature lora with the probe lora; want every probe of this version"
    else:
        other = lora.model_copy(update={"feature": "beam_search", "probe": "beams"})
        changed = (*manifest.refuses, other)
        want = "saw feature beam_search with the probe beams, which this version does not have"
    served = everywhere(Tier.SERVED, manifest)
    gate = Gate(manifest.model_copy(update={"refuses": changed}), Tier.STRESS_TESTED, served)
    with pytest.raises(InputError) as caught:
        admit(SOUND, gate)
    (problem,) = caught.value.problems
    assert str(problem).startswith(f"kimi-k3-decode: refuses: {want}")
    assert admit(replace(SOUND, decode_backend="auto"), gate).backend == "auto"


def test_the_gate_needs_no_torch() -> None:
    code = "import sys, kimi_k3.decode.scope; print({'torch', 'numpy'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
