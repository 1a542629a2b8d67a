# SPDX-License-Identifier: Apache-2.0
"""Everything that one rank holds while it decodes: weights, copies, state, cache, activations.

A tensor of `kimi_k3.activations` is listed once, because all layers share it. Nothing is
allocated, torch is not imported.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import prod

from kimi_k3.activations import (
    Load,
    Shape,
    dense_activations,
    kda_activations,
    mix_activations,
    mla_activations,
    moe_activations,
    step_activations,
)
from kimi_k3.config import K3Config
from kimi_k3.sharding import Sharding
from kimi_k3.tensors import DType, StoredTensor, layer_tensors, model_tensors


class Owner(StrEnum):
    """Who brings a tensor into being."""

    CHECKPOINT = "checkpoint"
    PACKED = "packed copy"
    STATE = "state"
    CACHE = "cache"
    ACTIVATION = "activation"


@dataclass(frozen=True)
class ResidentTensor:
    """A tensor of one rank, or all tensors of one name in several layers.

    Attributes:
        name: `*` stands for the layer, `{expert}` for the expert.
        layers: the layers that have one; empty for a tensor of no layer.
        copies: how many the rank holds in all.
        global_shape: of one, over all ranks; a checkpoint tensor's as it is stored.
        shape: of one, on this rank, with padding.
        live: of one, on this rank, without padding.
        dtype: element type.
        owner: who brings it into being.
        source: section and equation of the specification.
        replaces: names of checkpoint tensors that are views of this one and need no memory.
    """

    name: str
    layers: tuple[int, ...]
    copies: int
    global_shape: Shape
    shape: Shape
    live: Shape
    dtype: DType
    owner: Owner
    source: str
    replaces: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes of all copies on this rank."""
        return self.copies * prod(self.shape) * self.dtype.size

    @property
    def live_bytes(self) -> int:
        """Bytes of all copies without padding."""
        return self.copies * prod(self.live) * self.dtype.size


@dataclass(frozen=True)
class Sums:
    """Bytes of one rank.

    Attributes:
        weights: checkpoint tensors without padding.
        padding: zeros beside them, in experts and in packed projections that replace them.
        copies: packed copies beside the tensors they are made of.
        state: recurrent and convolution state of one request.
        cache: KV cache of one request of the longest context.
        activations: of one step.
    """

    weights: int
    padding: int
    copies: int
    state: int
    cache: int
    activations: int

    @property
    def resident_weights(self) -> int:
        """What the rank needs for weights in all."""
        return self.weights + self.padding + self.copies


def resident(s: Sharding, load: Load) -> tuple[ResidentTensor, ...]:
    """Every tensor of a rank, checkpoint tensors first."""
    return (*stored(s), *packed(s), *request_state(s, load), *activations(s, load))


def sums(tensors: tuple[ResidentTensor, ...]) -> Sums:
    """The bytes of `resident`, by what they are for."""
    stored_ = [t for t in tensors if t.owner is Owner.CHECKPOINT]
    packed_ = [t for t in tensors if t.owner is Owner.PACKED]
    return Sums(
        weights=sum(t.live_bytes for t in stored_),
        padding=sum(t.bytes - t.live_bytes for t in (*stored_, *packed_) if _in_place(t)),
        copies=sum(t.bytes for t in packed_ if not _in_place(t)),
        state=sum(t.bytes for t in tensors if t.owner is Owner.STATE),
        cache=sum(t.bytes for t in tensors if t.owner is Owner.CACHE),
        activations=sum(t.bytes for t in tensors if t.owner is Owner.ACTIVATION),
    )


def _in_place(tensor: ResidentTensor) -> bool:
    return tensor.owner is Owner.CHECKPOINT or bool(tensor.replaces)


def stored(s: Sharding) -> Iterator[ResidentTensor]:
    """The rank's part of each checkpoint tensor, tensors of one name together."""
    c = s.config
    for tensor in model_tensors(c):
        yield _stored(s, tensor, tensor.name, (), 1)
    layers_of: dict[StoredTensor, list[int]] = {}
    for layer in range(c.num_layers):
        for tensor in layer_tensors(c, layer):
            layers_of.setdefault(tensor, []).append(layer)
    for tensor, layers in layers_of.items():
        experts = c.num_experts if tensor.is_expert else 1
        name = f"model.layers.*.{tensor.name}"
        yield _stored(s, tensor, name, tuple(layers), len(layers) * experts)


def _stored(
    s: Sharding, tensor: StoredTensor, name: str, layers: tuple[int, ...], copies: int
) -> ResidentTensor:
    part = s.part(tensor.live, tensor.split)
    return ResidentTensor(
        name,
        layers,
        copies,
        tensor.shape,
        part.shape,
        part.live,
        tensor.dtype,
        Owner.CHECKPOINT,
        tensor.source,
    )


def packed(s: Sharding) -> Iterator[ResidentTensor]:
    """What the decode kernels read in another form than the checkpoint's (spec 3.1).

    The packed input projections take the place of their parts, which become views of their rows;
    the front projection stands beside the whole router and latent projection that the stock path
    reads.
    """
    c = s.config
    whole = Sharding(c, 1, 0)
    kda, mla, _, moe, dense = _layer_kinds(c)
    attention = "model.layers.*.self_attn"
    rows: tuple[tuple[str, tuple[int, ...], Shape, Shape, Shape, str, tuple[str, ...]], ...] = (
        (
            "layer.*.kda.in_proj",
            kda,
            (whole.kda_in_live_rows, c.hidden_size),
            (s.kda_in_rows, c.hidden_size),
            (s.kda_in_live_rows, c.hidden_size),
            "2.3 [W_q W_k W_v W_g W_fa W_b]",
            tuple(f"{attention}.{name}_proj.weight" for name in ("q", "k", "v", "g", "f_a", "b")),
        ),
        (
            "layer.*.mla.in_proj",
            mla,
            (whole.mla_in_rows, c.hidden_size),
            (s.mla_in_rows, c.hidden_size),
            (s.mla_in_rows, c.hidden_size),
            "2.5 [W_a W_g]",
            tuple(
                f"{attention}.{name}.weight"
                for name in ("q_a_proj", "kv_a_proj_with_mqa", "g_proj")
            ),
        ),
        (
            "layer.*.moe.front",
            moe,
            (c.num_experts + c.routed_expert_hidden_size, c.hidden_size),
            (s.front_rows, c.hidden_size),
            (s.router_live_rows + s.latent_rows, c.hidden_size),
            "2.6 [W_r W_down]",
            (),
        ),
        (
            "layer.*.dense.down_proj",
            dense,
            (c.hidden_size, c.intermediate_size),
            (c.hidden_size, s.dense_padded_width),
            (c.hidden_size, s.dense_width),
            "2.7 W_d",
            ("model.layers.*.mlp.down_proj.weight",),
        ),
    )
    for name, layers, global_shape, shape, live, source, replaces in rows:
        if layers:
            yield ResidentTensor(
                name,
                layers,
                len(layers),
                global_shape,
                shape,
                live,
                DType.BF16,
                Owner.PACKED,
                source,
                replaces,
            )


def request_state(s: Sharding, load: Load) -> Iterator[ResidentTensor]:
    """State of one request in `1 + draft` slots, and its cache at the longest context."""
    c = s.config
    slots, d = 1 + load.draft, c.kda_head_dim
    window = c.conv_window(load.draft)
    kda, mla, *_ = _layer_kinds(c)
    rows = (
        (
            "layer.*.kda.recurrent",
            kda,
            (slots, c.kda_num_heads, d, d),
            (slots, s.kda_heads, d, d),
            DType.FP32,
            Owner.STATE,
            "2.3 S",
        ),
        (
            "layer.*.kda.conv_window",
            kda,
            (slots, c.conv_channels, window),
            (slots, s.conv_channels, window),
            DType.BF16,
            Owner.STATE,
            "2.4 window",
        ),
        (
            "layer.*.mla.kv_cache",
            mla,
            (c.max_positions, c.kv_row),
            (s.cached_tokens(c.max_positions), c.kv_row),
            load.kv,
            Owner.CACHE,
            "2.5 [c kr]",
        ),
    )
    for name, layers, global_shape, shape, dtype, owner, source in rows:
        if layers:
            yield ResidentTensor(
                name, layers, len(layers), global_shape, shape, shape, dtype, owner, source
            )


def activations(s: Sharding, load: Load) -> Iterator[ResidentTensor]:
    """What one step computes on this rank, in the order in which it does."""
    m = load.rows
    kda, mla, every, moe, dense = _layer_kinds(s.config)
    whole = Sharding(s.config, 1, 0)
    sections = (
        ((), step_activations),
        (every, mix_activations),
        (kda, kda_activations),
        (mla, mla_activations),
        (dense, dense_activations),
        (moe, moe_activations),
    )
    for layers, section in sections:
        if not layers and section is not step_activations:
            continue
        prefix = "layer.*." if layers else ""
        for (name, live, dtype, source, pad), (_, global_live, *_) in zip(
            section(s, load), section(whole, load), strict=True
        ):
            shape = (*live[:-1], pad) if pad else live
            yield ResidentTensor(
                f"{prefix}{name}",
                layers,
                1,
                (m, *global_live),
                (m, *shape),
                (m, *live),
                dtype,
                Owner.ACTIVATION,
                source,
            )


def _layer_kinds(c: K3Config) -> tuple[tuple[int, ...], ...]:
    """KDA, MLA, all, expert and dense layers."""
    every = tuple(range(c.num_layers))
    experts = tuple(layer for layer in every if not c.is_dense(layer))
    return c.kda_layers, c.mla_layers, every, experts, every[: c.dense_layers]
