# SPDX-License-Identifier: Apache-2.0
"""Small manifests, and a second formulation of scopes that lists every point."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from fasttrack.manifest.load import load_manifest
from fasttrack.manifest.model import Manifest, Region, Unit
from fasttrack.manifest.region import Point
from fasttrack.manifest.words import Dtype, GraphMode, Ranks, UnitAxis
from fasttrack.vocabulary import Tier

CASES = Path(__file__).parent.parent / "cases" / "manifest"
VALID = (CASES / "valid.yaml").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Gpu:
    """A hardware record, as the policy has it."""

    arch: str
    domain_gpus: int = 8


VOCABULARY = {
    "b200": Gpu("sm_100a"),
    "gb300": Gpu("sm_103a", 72),
    "h200": Gpu("sm_90a"),
    "x1": Gpu("sm_120"),
}


@cache
def valid() -> Manifest:
    return load_manifest(VALID, "valid.yaml")


def region(**changes: Any) -> Region:
    """A one-point-wide region; `requests` may be a pair, dtypes are named directly."""
    fields: dict[str, Any] = {
        "id": "r",
        "hardware": ["h200"],
        "ranks": "real",
        "tensor_parallel": [1],
        "decode_context_parallel": [1],
        "requests": (1, 4),
        "draft_tokens": [0],
        "rows_max": 4,
        "context_max": 1,
        "graph_modes": ["full"],
        "tier": "compiled",
        "weights": ["mxfp4"],
        "activations": ["bf16"],
        "kv_cache": ["bf16"],
        "conv_state": ["bf16"],
        "recurrent_state": ["fp32"],
    } | changes
    low, high = fields["requests"]
    fields["requests"] = {"min": low, "max": high}
    names = ("weights", "activations", "kv_cache", "conv_state", "recurrent_state")
    fields["dtypes"] = {name: fields.pop(name) for name in names}
    return Region.model_validate(fields, strict=False)


def unit(*axes: str, switch_points: Sequence[int] = (), **changes: Any) -> Unit:
    base = valid().units[1]
    words = tuple(UnitAxis(axis) for axis in axes)
    update = {"axes": words, "switch_points": tuple(switch_points), "data": ()} | changes
    return base.model_copy(update=update)


def manifest(*regions: Region, **changes: Any) -> Manifest:
    named = tuple(
        r.model_copy(update={"id": f"r{i}"}) if len(regions) > 1 else r
        for i, r in enumerate(regions)
    )
    return valid().model_copy(update={"scope": named or valid().scope, **changes})


HARDWARE = ("b200", "h200")
GRAPHS = (GraphMode.FULL, GraphMode.EAGER)
CACHES = (Dtype.BF16, Dtype.FP8_E4M3)
REQUESTS = range(1, 6)
DRAFTS = range(4)
CONTEXTS = range(1, 4)


def some(values: Sequence[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True)


@st.composite
def regions(draw: st.DrawFn, **fixed: Any) -> Region:
    """Regions of the small universe; as in loaded manifests, every draft length fits."""
    low = draw(st.integers(1, 4))
    high = draw(st.integers(low, 4))
    drafts = draw(some(range(3)))
    least = low * (1 + max(drafts))
    fields = {
        "hardware": draw(some(HARDWARE)),
        "ranks": draw(st.sampled_from(Ranks)),
        "tensor_parallel": draw(some((1, 2))),
        "kv_cache": draw(some(CACHES)),
        "graph_modes": draw(some(GRAPHS)),
        "requests": (low, high),
        "draft_tokens": drafts,
        "rows_max": draw(st.integers(least, max(least, 12))),
        "context_max": draw(st.integers(1, 2)),
        "tier": draw(st.sampled_from(list(Tier)[:3])),
    }
    return region(**(fields | fixed))


def universe() -> Iterator[Point]:
    """Every point of the small universe, with a margin around what regions can admit."""
    for hw, ranks, tp, kv, graph in product(HARDWARE, Ranks, (1, 2), CACHES, GRAPHS):
        for requests, draft, context in product(REQUESTS, DRAFTS, CONTEXTS):
            yield Point(
                hardware=hw,
                ranks=ranks,
                tensor_parallel=tp,
                decode_context_parallel=1,
                requests=requests,
                draft_tokens=draft,
                context=context,
                weights=Dtype.MXFP4,
                activations=Dtype.BF16,
                kv_cache=kv,
                conv_state=Dtype.BF16,
                recurrent_state=Dtype.FP32,
                graph_mode=graph,
            )


UNIVERSE = tuple(universe())


def admits(r: Region, p: Point) -> bool:
    """Membership, written from the manifest's fields and not from the algebra's boxes."""
    return (
        p.hardware in r.hardware
        and p.ranks == r.ranks
        and p.tensor_parallel in r.tensor_parallel
        and p.decode_context_parallel in r.decode_context_parallel
        and r.requests.min <= p.requests <= r.requests.max
        and p.draft_tokens in r.draft_tokens
        and p.requests * (1 + p.draft_tokens) <= r.rows_max
        and 1 <= p.context <= r.context_max
        and p.weights in r.dtypes.weights
        and p.activations in r.dtypes.activations
        and p.kv_cache in r.dtypes.kv_cache
        and p.conv_state in r.dtypes.conv_state
        and p.recurrent_state in r.dtypes.recurrent_state
        and p.graph_mode in r.graph_modes
    )


def members(r: Region) -> frozenset[Point]:
    return frozenset(p for p in UNIVERSE if admits(r, p))
