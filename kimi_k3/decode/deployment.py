# SPDX-License-Identifier: Apache-2.0
"""What the gate must know of a server when it starts.

None is a fact that could not be established. The gate refuses it: what nobody looked at is not
known to be harmless.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from kimi_k3.config import K3Config
from kimi_k3.decode.nvlink import NvlinkDomain


def _feature(why: str) -> Any:
    """A feature that is unknown until somebody tells, and why the path can not run with it."""
    return field(default=None, metadata={"why": why})


@dataclass(frozen=True)
class Features:
    """Features that the path refuses, each on (True), off (False) or unknown (None).

    One field is one probe: its id is the field's name with dashes, and the manifest's `refuses`
    must name exactly these. A field that is added is unknown, and so refused, in every server
    until that server tells.
    """

    pipeline_parallel: bool | None = _feature("every rank computes all layers")
    expert_parallel: bool | None = _feature("every rank holds a slice of each expert")
    micro_batch_overlap: bool | None = _feature("a step is not divided between two streams")
    sleep_mode: bool | None = _feature("captured graphs hold addresses of weights and mailboxes")
    lora: bool | None = _feature("no kernel adds an adapter to a projection")
    whole_model_compile: bool | None = _feature("a compiled model has no layers to replace")
    state_replay: bool | None = _feature(
        "each token of a verify window has a state slot of its own"
    )
    tree_drafts: bool | None = _feature("a verify window is one chain of draft tokens")
    adaptive_verification: bool | None = _feature("all requests of a step verify equally many")
    nvlink_multicast: bool | None = _feature("peers exchange through unicast stores")

    @classmethod
    def absent(cls) -> "Features":
        """All off: for an engine that has none of them."""
        return cls(**dict.fromkeys((f.name for f in fields(cls)), False))

    def probes(self) -> Iterator["Probe"]:
        """Every probe with its answer, in the order of the fields."""
        for one in fields(self):
            yield Probe(
                id=one.name.replace("_", "-"),
                feature=one.name,
                why=one.metadata["why"],
                on=getattr(self, one.name),
            )


@dataclass(frozen=True)
class Probe:
    """One question of the gate about a feature, with its answer.

    Attributes:
        id: how the manifest names the question.
        feature: how the manifest names the feature.
        why: why the path can not run with it.
        on: the answer; None when nobody knows.
    """

    id: str
    feature: str
    why: str
    on: bool | None


@dataclass(frozen=True)
class Formats:
    """Number formats in the manifest's words; None is unknown.

    Attributes:
        weights: of the routed experts' weights.
        activations: of the operands that meet them.
        kv_cache: of the attention cache.
        conv_state: of the convolution state.
        recurrent_state: of the recurrent state.
    """

    weights: str | None
    activations: str | None
    kv_cache: str | None
    conv_state: str | None
    recurrent_state: str | None


@dataclass(frozen=True)
class Deployment:
    """One server, as the gate sees it at startup.

    Attributes:
        decode_backend: value of the option.
        config: the model's shapes.
        hardware: id of the policy's vocabulary, or what was found in place of one.
        tp: tensor parallelism.
        dcp: decode context parallelism.
        max_requests: most requests of one decode step.
        draft_tokens: draft tokens per request; 0 without speculation.
        max_context: longest context in tokens.
        graph_mode: how decode steps are launched: `eager`, `piecewise` or `full`.
        formats: number formats.
        features: what is switched on.
        domains: NVLink domain of each tensor-parallel rank, rank 0 first; asked of only where
            there are several devices.
        virtual_ranks: the ranks are simulated on one device, and nothing is served.
        decode_min_tier: value of the option that sets the tier that is admitted; None leaves
            the policy's. Not with virtual ranks.
    """

    decode_backend: str
    config: K3Config | None
    hardware: str | None
    tp: int | None
    dcp: int | None
    max_requests: int | None
    draft_tokens: int | None
    max_context: int | None
    graph_mode: str | None
    formats: Formats
    features: Features
    domains: tuple[NvlinkDomain | None, ...] = ()
    virtual_ranks: bool = False
    decode_min_tier: str | None = None

    def unknown(self) -> Iterator[str]:
        """Names of the facts that the scope asks for and nobody knows."""
        for name in ("hardware", "tp", "dcp", "max_requests", "draft_tokens", "max_context"):
            if getattr(self, name) is None:
                yield name
        if self.graph_mode is None:
            yield "graph_mode"
        for one in fields(self.formats):
            if getattr(self.formats, one.name) is None:
                yield f"the format of {one.name}"
