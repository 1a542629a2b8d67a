# SPDX-License-Identifier: Apache-2.0
"""Servers to ask the gate about, and a gate at which the tier stands in nobody's way."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from fasttrack.manifest.model import Manifest
from fasttrack.vocabulary import Tier
from kimi_k3.config import full
from kimi_k3.decode.deployment import Deployment, Features, Formats
from kimi_k3.decode.nvlink import NvlinkDomain
from kimi_k3.decode.packaged import packaged_manifest
from kimi_k3.decode.scope import Gate, packaged_gate

DOMAIN = NvlinkDomain("8f2e0000-0000-4000-8000-000000000001", 7)
SPECIALISED = "latency_specialized"
SOUND = Deployment(
    decode_backend=SPECIALISED,
    config=full(),
    hardware="gb300",
    tp=16,
    dcp=1,
    max_requests=8,
    draft_tokens=7,
    max_context=4096,
    graph_mode="full",
    formats=Formats("mxfp4", "bf16", "fp8_e4m3", "bf16", "fp32"),
    features=Features.absent(),
    domains=(DOMAIN,) * 16,
)
"""Nothing about it is out of scope."""
VIRTUAL = replace(SOUND, hardware="cpu", tp=1, graph_mode="eager", domains=(), virtual_ranks=True)


def opened(manifest: Manifest) -> Manifest:
    """The manifest with every region at the highest tier; only the effective tier then limits."""
    regions = tuple(r.model_copy(update={"tier": Tier.SERVED}) for r in manifest.scope)
    return manifest.model_copy(update={"scope": regions})


@cache
def todays_gate() -> Gate:
    """The gate of this checkout."""
    return packaged_gate()


@cache
def open_gate() -> Gate:
    """As if evidence bore out everything."""
    manifest = opened(packaged_manifest())
    return Gate(manifest, Tier.STRESS_TESTED, everywhere(Tier.SERVED, manifest))


def everywhere(tier: Tier, manifest: Manifest) -> dict[str, Tier]:
    """As if evidence bore out this tier of every region."""
    return {region.id: tier for region in manifest.scope}


def at(values: Mapping[str, Any]) -> Deployment:
    """The server whose largest step is a point of the scope's space."""
    return replace(
        SOUND,
        hardware=values["hardware"],
        tp=values["tensor_parallel"],
        dcp=values["decode_context_parallel"],
        max_requests=values["requests"],
        draft_tokens=values["draft_tokens"],
        max_context=values["context"],
        graph_mode=values["graph_mode"],
        formats=Formats(
            values["weights"],
            values["activations"],
            values["kv_cache"],
            values["conv_state"],
            values["recurrent_state"],
        ),
        domains=(DOMAIN,) * values["tensor_parallel"],
        virtual_ranks=values["ranks"] == "virtual",
    )
