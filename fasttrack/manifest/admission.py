# SPDX-License-Identifier: Apache-2.0
"""Whether a configuration is inside a manifest's scope, and every reason why not.

The checker, the command line and the runtime gate ask here, so that all three read the scope
alike.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from fasttrack.errors import InputError
from fasttrack.manifest.model import Manifest, Region
from fasttrack.manifest.words import Ranks, Status
from fasttrack.vocabulary import Tier

DEFAULT_ADMIT_TIER = Tier.STRESS_TESTED
"""Lowest effective tier that the runtime admits, unless the policy sets another."""
SHOWN_CHARACTERS = 40
"""Of an id that nobody knows."""
NOTHING_BORNE_OUT: Mapping[str, Tier] = {}
"""The effective tiers where there is no evidence."""


@dataclass(frozen=True)
class Question:
    """One configuration of a deployment and a decode step.

    None is a value that is not asked about, which no bound then speaks of: who must know it, and
    does not, has to refuse by itself.

    Attributes:
        gpu: hardware id of the policy's vocabulary.
        tp: tensor parallelism.
        dcp: decode context parallelism.
        requests: requests in the step.
        draft: draft tokens per request; 0 is decoding without a draft.
        context: longest context in tokens.
        ranks: devices, or simulated peers on one.
        graph_mode: how steps are launched.
        weights: format of the expert weights.
        activations: format of the operands that meet them.
        kv_cache: format of the attention cache.
        conv_state: format of the convolution state.
        recurrent_state: format of the recurrent state.
    """

    gpu: str | None
    tp: int | None
    dcp: int | None
    requests: int | None
    draft: int | None
    context: int | None
    ranks: Ranks = Ranks.REAL
    graph_mode: str | None = None
    weights: str | None = None
    activations: str | None = None
    kv_cache: str | None = None
    conv_state: str | None = None
    recurrent_state: str | None = None

    @property
    def rows(self) -> int | None:
        """Rows of the step."""
        if self.requests is None or self.draft is None:
            return None
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


def require_known(gpu: str, vocabulary: Collection[str], where: str) -> None:
    """Sees to it that a person asks about hardware that the policy knows.

    A slip in the name would else read as "no region holds it". A server does not ask so: what a
    driver reports need not be known, and is then outside every region.

    Args:
        gpu: hardware id.
        vocabulary: the ids of the policy.
        where: the option that brought `gpu`.

    Raises:
        InputError: the policy does not know it.
    """
    if gpu in vocabulary:
        return
    near = get_close_matches(gpu.lower(), vocabulary, n=1)
    raise InputError.one(
        where,
        repr(gpu[:SHOWN_CHARACTERS]),
        f"a hardware id of the policy: {', '.join(sorted(vocabulary))}",
        f"{where} {near[0]}" if near else "",
    )


def ask(
    manifest: Manifest,
    question: Question,
    admit_tier: Tier,
    effective: Mapping[str, Tier] = NOTHING_BORNE_OUT,
) -> tuple[RegionAnswer, ...]:
    """The answers of all regions, in the manifest's order.

    Args:
        manifest: the manifest that is asked.
        question: the configuration.
        admit_tier: lowest effective tier that may be admitted.
        effective: region to the tier that evidence bears out; `declared` where it is absent.
    """
    return tuple(
        _ask(manifest, r, question, admit_tier, effective.get(r.id, Tier.DECLARED))
        for r in manifest.scope
    )


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
    dtypes = region.dtypes
    sets: tuple[tuple[str, object, Sequence[object]], ...] = (
        ("gpu", question.gpu, region.hardware),
        ("tp", question.tp, region.tensor_parallel),
        ("dcp", question.dcp, region.decode_context_parallel),
        ("draft", question.draft, region.draft_tokens),
        ("weights", question.weights, dtypes.weights),
        ("activations", question.activations, dtypes.activations),
        ("kv_cache", question.kv_cache, dtypes.kv_cache),
        ("conv_state", question.conv_state, dtypes.conv_state),
        ("recurrent_state", question.recurrent_state, dtypes.recurrent_state),
        ("graph_mode", question.graph_mode, region.graph_modes),
    )
    for axis, value, admitted in sets:
        if value is not None and value not in admitted:
            yield f"{axis} {value} is not one of {', '.join(str(a) for a in admitted)}"
    if question.ranks is Ranks.VIRTUAL and region.ranks is Ranks.REAL:
        yield "its ranks are devices, not virtual"
    yield from _past_ranges(region, question)


def _past_ranges(region: Region, question: Question) -> Iterator[str]:
    low, high = region.requests.min, region.requests.max
    if question.requests is not None and not low <= question.requests <= high:
        yield f"{question.requests} requests are not within {low} to {high}"
    if question.rows is not None and question.rows > region.rows_max:
        yield (
            f"{question.requests} requests x (1 + {question.draft} draft tokens) = "
            f"{question.rows} rows exceed {region.rows_max}"
        )
    if question.context is not None and question.context > region.context_max:
        yield f"a context of {question.context} tokens exceeds {region.context_max}"


def _below(
    manifest: Manifest, region: Region, question: Question, reached: Tier, admit_tier: Tier
) -> Iterator[str]:
    if manifest.state.status is not Status.ACTIVE:
        yield f"{manifest.state.status.value} since {manifest.state.since}: {manifest.state.reason}"
    if region.ranks is Ranks.VIRTUAL and question.ranks is Ranks.REAL:
        yield "its ranks are virtual: one rank's shapes on one device, never a deployment"
    if reached.rank < admit_tier.rank and question.gpu in region.hardware:
        shown = "never executed" if reached.rank <= Tier.COMPILED.rank else "not enough"
        yield f"{question.gpu}: {reached.value}, {shown}; admitted from {admit_tier.value}"
