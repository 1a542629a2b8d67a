# SPDX-License-Identifier: Apache-2.0
"""Whether a configuration is inside a manifest's scope, and every reason why not.

The checker, the command line and the runtime gate ask here, so that all three read the scope
alike.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fasttrack.manifest.model import Manifest, Region
from fasttrack.manifest.words import Ranks, Status
from fasttrack.vocabulary import Tier

DEFAULT_ADMIT_TIER = Tier.STRESS_TESTED
"""Lowest effective tier that the runtime admits, unless the policy sets another."""


@dataclass(frozen=True)
class Question:
    """One configuration of a deployment and a decode step.

    Attributes:
        gpu: hardware id of the policy's vocabulary.
        tp: tensor parallelism.
        dcp: decode context parallelism.
        requests: requests in the step.
        draft: draft tokens per request; 0 is decoding without a draft.
        context: longest context in tokens.
    """

    gpu: str
    tp: int
    dcp: int
    requests: int
    draft: int
    context: int

    @property
    def rows(self) -> int:
        """Rows of the step."""
        return self.requests * (1 + self.draft)


@dataclass(frozen=True)
class RegionAnswer:
    """What one region says to a question.

    Attributes:
        region: its id.
        claimed: the tier that the manifest claims.
        effective: the tier that evidence bears out today.
        outside: the bounds that the question exceeds; empty when it is inside.
        below: why it is not admitted although inside; empty when it is.
    """

    region: str
    claimed: Tier
    effective: Tier
    outside: tuple[str, ...]
    below: tuple[str, ...]

    @property
    def admits(self) -> bool:
        """Whether the runtime may admit the configuration through this region."""
        return not self.outside and not self.below


def ask(
    manifest: Manifest, question: Question, admit_tier: Tier, effective: Tier = Tier.DECLARED
) -> tuple[RegionAnswer, ...]:
    """The answers of all regions, in the manifest's order.

    Args:
        manifest: the manifest that is asked.
        question: the configuration.
        admit_tier: lowest effective tier that may be admitted.
        effective: the tier that evidence bears out; `declared` while none is read.
    """
    return tuple(_ask(manifest, r, question, admit_tier, effective) for r in manifest.scope)


def _ask(
    manifest: Manifest, region: Region, question: Question, admit_tier: Tier, effective: Tier
) -> RegionAnswer:
    reached = min(region.tier, effective, key=lambda tier: tier.rank)
    return RegionAnswer(
        region=region.id,
        claimed=region.tier,
        effective=reached,
        outside=tuple(_outside(region, question)),
        below=tuple(_below(manifest, region, question, reached, admit_tier)),
    )


def _outside(region: Region, question: Question) -> Iterator[str]:
    sets: tuple[tuple[str, object, Sequence[object]], ...] = (
        ("gpu", question.gpu, region.hardware),
        ("tp", question.tp, region.tensor_parallel),
        ("dcp", question.dcp, region.decode_context_parallel),
        ("draft", question.draft, region.draft_tokens),
    )
    for axis, value, admitted in sets:
        if value not in admitted:
            yield f"{axis} {value} is not one of {', '.join(str(a) for a in admitted)}"
    low, high = region.requests.min, region.requests.max
    if not low <= question.requests <= high:
        yield f"{question.requests} requests are not within {low} to {high}"
    if question.rows > region.rows_max:
        yield (
            f"{question.requests} requests x (1 + {question.draft} draft tokens) = "
            f"{question.rows} rows exceed {region.rows_max}"
        )
    if question.context > region.context_max:
        yield f"a context of {question.context} tokens exceeds {region.context_max}"


def _below(
    manifest: Manifest, region: Region, question: Question, reached: Tier, admit_tier: Tier
) -> Iterator[str]:
    if manifest.state.status is not Status.ACTIVE:
        yield f"{manifest.state.status.value} since {manifest.state.since}: {manifest.state.reason}"
    if region.ranks is Ranks.VIRTUAL:
        yield "its ranks are virtual: one rank's shapes on one device, never a deployment"
    if reached.rank < admit_tier.rank and question.gpu in region.hardware:
        shown = "never executed" if reached.rank <= Tier.COMPILED.rank else "not enough"
        yield f"{question.gpu}: {reached.value}, {shown}; admitted from {admit_tier.value}"
