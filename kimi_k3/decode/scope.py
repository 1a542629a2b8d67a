# SPDX-License-Identifier: Apache-2.0
"""The gate: which deployments the specialised path may serve.

It holds no limit of its own. Bounds and refused features come from the packaged scope manifest,
the same file that `fasttrack check` enforces; the tier that is admitted comes from the policy.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace

from fasttrack.errors import FasttrackError, InputError, Problem
from fasttrack.manifest.admission import Question, RegionAnswer, ask
from fasttrack.manifest.model import Manifest, Region
from fasttrack.manifest.words import Ranks
from fasttrack.vocabulary import Tier
from kimi_k3.config import full
from kimi_k3.decode.deployment import Deployment, Features
from kimi_k3.decode.nvlink import domain_reasons
from kimi_k3.decode.packaged import packaged_effective, packaged_manifest, packaged_policy

MIN_TIERS = tuple(tier for tier in Tier if tier is not Tier.DECLARED)
"""What `decode_min_tier` may say. `declared` is a claim that nothing stands behind."""
SHOWN_FIELDS = 3
"""Fields of another model that a line names; the others are counted."""


class Refused(FasttrackError):  # noqa: N818  (an answer of the gate, not a fault)
    """The path was asked for and may not serve here; carries every reason.

    Attributes:
        backend: what was asked for.
        fallback: the value of the option that runs here.
        reasons: why not, in the gate's order.
    """

    def __init__(self, backend: str, fallback: str, reasons: Sequence[str]) -> None:
        if not reasons:
            raise ValueError("a refusal has at least one reason")
        self.backend = backend
        self.fallback = fallback
        self.reasons = tuple(reasons)
        super().__init__("\n".join(self.lines()))

    def lines(self) -> tuple[str, ...]:
        """What to print: what runs here instead, then one reason a line."""
        head = f"decode_backend {self.backend} is refused; decode_backend {self.fallback} runs here"
        return (head, *(f"  - {reason}" for reason in self.reasons))


@dataclass(frozen=True)
class Gate:
    """What the gate judges by.

    Attributes:
        manifest: the scope.
        admit_tier: lowest effective tier that is admitted.
        effective: region to the tier that evidence bears out; `declared` where it is absent.
    """

    manifest: Manifest
    admit_tier: Tier
    effective: Mapping[str, Tier] = field(default_factory=dict)

    def bar(self, *, virtual_ranks: bool, min_tier: str | None) -> Tier:
        """The tier that a region must reach.

        With virtual ranks that is the lowest: nothing is served, and evidence for a higher tier
        can only come from such runs.

        Raises:
            InputError: a tier is asked for with virtual ranks, of which it can say nothing.
        """
        if virtual_ranks:
            if min_tier is not None:
                raise InputError([_tier_of_nothing(min_tier)])
            return Tier.DECLARED
        return self.admit_tier if min_tier is None else Tier(min_tier)

    def answers(
        self, question: Question, *, min_tier: str | None = None
    ) -> tuple[RegionAnswer, ...]:
        """What each region says, in the manifest's order.

        Raises:
            InputError: see `bar`.
        """
        virtual = question.ranks is Ranks.VIRTUAL
        bar = self.bar(virtual_ranks=virtual, min_tier=min_tier)
        return ask(self.manifest, question, bar, self.effective)

    def notes(self, *, virtual_ranks: bool, min_tier: str | None) -> tuple[str, ...]:
        """What every start and every result must say when the policy's tier is not asked for.

        Raises:
            InputError: see `bar`.
        """
        bar = self.bar(virtual_ranks=virtual_ranks, min_tier=min_tier)
        if virtual_ranks:
            return (
                f"virtual ranks: one device, not a deployment; admitted from tier {bar.value}, "
                "because nothing is served",
            )
        if bar.rank < self.admit_tier.rank:
            return (
                f"decode_min_tier {bar.value}: below the policy's {self.admit_tier.value}, on the "
                "operator's own account",
            )
        return ()


def packaged_gate() -> Gate:
    """The gate of this installation.

    Raises:
        InputError: the manifest, the policy or the effective tiers are malformed; nothing is
            admitted then.
    """
    manifest = packaged_manifest()
    return Gate(manifest, packaged_policy().admit_tier, packaged_effective(manifest.name))


@dataclass(frozen=True)
class Admission:
    """What may run.

    Attributes:
        backend: value of the option.
        region: the region that admits the specialised path; None for the fallback, which takes
            every deployment.
        effective: the tier that evidence bears out for that region.
        notes: lines that every start and every result repeats.
    """

    backend: str
    region: Region | None = None
    effective: Tier = Tier.DECLARED
    notes: tuple[str, ...] = ()

    def lines(self) -> tuple[str, ...]:
        """What to print at startup."""
        head = f"decode_backend {self.backend}"
        if self.region is not None:
            head += f": region {self.region.id}, effective tier {self.effective.value}"
        return (head, *self.notes)


def admit(deployment: Deployment, gate: Gate | None = None) -> Admission:
    """Decides at startup whether the backend that was asked for may run.

    (1) Options must have known values. (2) The fallback takes everything. Otherwise (3) manifest
    and code must speak of the same features, (4) every fact and every region is asked, and (5) one
    reason against it is enough to refuse, with all of them.

    Args:
        deployment: every fact about the server.
        gate: what to judge by; the installation's own when None.

    Raises:
        InputError: an option has an unknown value, or a tier is asked for with virtual ranks; or
            the specialised path is asked for, and manifest and code disagree about the features to
            refuse.
        Refused: the specialised path may not serve here; with every reason.
    """
    gate = gate or packaged_gate()
    switch = gate.manifest.code.switch
    if problems := [*_option_problems(deployment, gate.manifest)]:  # (1)
        raise InputError(problems)
    if deployment.decode_backend == switch.default:  # (2)
        return Admission(switch.default)
    if problems := [*_probe_problems(gate.manifest)]:  # (3)
        raise InputError(problems)
    answers = gate.answers(every_step(deployment), min_tier=deployment.decode_min_tier)  # (4)
    admitting = next((a for a in answers if a.admits), None)
    reasons = [
        *(f"could not tell {name}" for name in deployment.unknown()),
        *_feature_reasons(deployment.features),
        *_model_reasons(deployment),
        *_domain_reasons(deployment),
        *(_region_reasons(answers) if admitting is None else ()),
    ]
    if admitting is None or reasons:  # (5)
        raise Refused(switch.value, switch.fallback, reasons)
    region = next(r for r in gate.manifest.scope if r.id == admitting.region)
    notes = (
        *_gate_notes(gate, deployment),
        *_model_notes(deployment),
        *_step_notes(deployment, region),
    )
    return Admission(switch.value, region, admitting.effective, notes)


def every_step(deployment: Deployment) -> Question:
    """What the regions are asked at startup: all that holds for every step alike.

    A server may well take in more requests and longer contexts than a region holds; the planner
    leaves those steps to the stock path.
    """
    return replace(largest_step(deployment), requests=None, context=None)


def largest_step(deployment: Deployment) -> Question:
    """The deployment's largest step, as a question; unknown facts are not asked."""
    return Question(
        gpu=deployment.hardware,
        tp=deployment.tp,
        dcp=deployment.dcp,
        requests=deployment.max_requests,
        draft=deployment.draft_tokens,
        context=deployment.max_context,
        ranks=Ranks.VIRTUAL if deployment.virtual_ranks else Ranks.REAL,
        graph_mode=deployment.graph_mode,
        **asdict(deployment.formats),
    )


def _option_problems(deployment: Deployment, manifest: Manifest) -> Iterator[Problem]:
    switch = manifest.code.switch
    if deployment.decode_backend not in {switch.default, switch.value}:
        want = f"{switch.default} or {switch.value}"
        yield Problem(switch.option, repr(deployment.decode_backend), want)
    if deployment.decode_min_tier not in {None, *MIN_TIERS}:
        want = f"one of {', '.join(MIN_TIERS)}"
        yield Problem("decode_min_tier", repr(deployment.decode_min_tier), want)
    elif deployment.virtual_ranks and deployment.decode_min_tier is not None:
        yield _tier_of_nothing(deployment.decode_min_tier)


def _tier_of_nothing(min_tier: str) -> Problem:
    return Problem(
        "decode_min_tier",
        f"{min_tier!r} with virtual ranks",
        f"none with them: nothing is served, so that they are admitted from {Tier.DECLARED.value}",
        "leave out the tier (--min-tier), or the virtual ranks (--virtual-ranks)",
    )


def _probe_problems(manifest: Manifest) -> Iterator[Problem]:
    """Features that only one side knows: the gate could not keep what the manifest says."""
    known = {(probe.feature, probe.id) for probe in Features().probes()}
    named = {(refusal.feature, refusal.probe) for refusal in manifest.refuses}
    for feature, probe in sorted(named - known):
        saw = f"feature {feature} with the probe {probe}, which this version does not have"
        yield Problem(f"{manifest.name}: refuses", saw, "probes of this version")
    for feature, probe in sorted(known - named):
        saw = f"no feature {feature} with the probe {probe}"
        yield Problem(f"{manifest.name}: refuses", saw, "every probe of this version")


def _feature_reasons(features: Features) -> Iterator[str]:
    for probe in features.probes():
        if probe.on is None:
            yield f"could not tell whether {probe.feature} is on"
        elif probe.on:
            yield f"{probe.feature} is on; {probe.why}"


def _model_reasons(deployment: Deployment) -> Iterator[str]:
    if deployment.config is None:
        yield "could not tell the model's shapes"
    elif not deployment.virtual_ranks and (foreign := _foreign(deployment)):
        yield f"the model is not the published Kimi K3: other {foreign}"


def _gate_notes(gate: Gate, deployment: Deployment) -> tuple[str, ...]:
    return gate.notes(virtual_ranks=deployment.virtual_ranks, min_tier=deployment.decode_min_tier)


def _model_notes(deployment: Deployment) -> Iterator[str]:
    """Virtual ranks may run any shapes: what they show is then not about the full model."""
    if foreign := _foreign(deployment):
        yield f"another model than Kimi K3 (other {foreign}): shows nothing about Kimi K3"


def _step_notes(deployment: Deployment, region: Region) -> Iterator[str]:
    """What of the deployment's steps the planner will leave to the stock path, if anything."""
    requests, draft, context = (
        deployment.max_requests or 0,
        deployment.draft_tokens or 0,
        deployment.max_context or 0,
    )
    most = min(region.requests.max, region.rows_max // (1 + draft))
    if requests > most:
        yield f"steps of more than {most} requests run on auto; this server takes up to {requests}"
    if context > region.context_max:
        longest = f"longer than {region.context_max} tokens"
        yield f"steps with a request {longest} run on auto; this server takes up to {context}"


def _foreign(deployment: Deployment) -> str:
    """Fields in which the model is not the published one; empty when it is."""
    want, config = full(), deployment.config
    differ = [f.name for f in fields(want) if getattr(config, f.name) != getattr(want, f.name)]
    more = len(differ) - SHOWN_FIELDS
    shown = ", ".join(differ[:SHOWN_FIELDS])
    return f"{shown} and {more} more" if more > 0 else shown


def _domain_reasons(deployment: Deployment) -> Iterator[str]:
    """Ranks exchange by stores into each other's memory, which reach inside one domain alone."""
    ranks = deployment.tp or 0  # an unknown number is a reason of its own
    peers = ranks - 1
    if peers > 0 and not deployment.virtual_ranks:
        yield from domain_reasons(ranks, deployment.domains)


def _region_reasons(answers: Sequence[RegionAnswer]) -> Iterator[str]:
    """One line a region; what all regions say is said once."""
    said = [(*a.outside, *a.below) for a in answers]
    shared = [reason for reason in said[0] if all(reason in other for other in said)]
    yield from shared
    for answer, reasons in zip(answers, said, strict=True):
        own = [reason for reason in reasons if reason not in shared]
        if own:
            yield f"{answer.region}: {'; '.join(own)}"
