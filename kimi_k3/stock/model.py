# SPDX-License-Identifier: Apache-2.0
"""The `auto` backend: the depth loop of spec 2.1 over any step, prefills and mixtures included.

prefix = embed(token);  pending = none
for each layer:
    prefix += pending;   x = AttnRes(blocks, prefix);   save the prefix if the layer writes
    a = Attention(x)
    prefix, pending = (a, none) after a block write, else (prefix, a)
    prefix += pending;   y = AttnRes(blocks, prefix);   pending = FFN(y)
h = AttnRes(blocks, prefix + pending), without output norm
logits = W_lm_head RMSNorm(h)
"""

from dataclasses import dataclass
from typing import Generic

import torch

from kimi_k3.config import K3Config
from kimi_k3.packed import PackedLayer, PackedModel
from kimi_k3.reference.state import Caches, KdaState, KvCache
from kimi_k3.step import Step, StepOutput
from kimi_k3.stock.ops import P, Residual, StockOps


@dataclass(frozen=True)
class StockModel(Generic[P]):
    """One rank's stock path.

    Attributes:
        config: the whole model's configuration.
        weights: this rank's.
        caches: state slots and pages, advanced in place and shared with other backends.
        ops: the device's operations.
        aux_layers: layers whose residual stream `StepOutput.aux` carries, in this order.
    """

    config: K3Config
    weights: PackedModel
    caches: Caches
    ops: StockOps[P]
    aux_layers: tuple[int, ...] = ()

    def step(self, step: Step) -> StepOutput:
        """See `kimi_k3.step.Backend`."""
        ops, streams = self.ops, {}
        kept = {index + 1 for index in self.aux_layers}  # what leaves a layer enters the next one
        prepared = ops.prepare(step)
        stream = Residual(ops.embed(step.token_ids), (), ops.blocks(step.shape.rows), 0)
        for index, layer in enumerate(self.weights.layers):
            writes = self.config.writes_block(index)
            state = self.caches.layers[index]
            stream, entered = run_layer(ops, layer, stream, state, prepared, writes=writes)
            if index in kept:
                streams[index] = entered
        hidden, prefix = ops.mix(self.weights.final_mix, stream, write=False)
        streams[len(self.weights.layers)] = prefix
        wanted = step.shape.logit_rows()
        rows = hidden if len(wanted) == step.shape.rows else hidden[wanted]
        aux = tuple(streams[index + 1] for index in self.aux_layers)
        return StepOutput(hidden, aux, ops.logits(rows))

    def providers(self) -> tuple[str, ...]:
        """See `kimi_k3.step.Backend`."""
        return ("stock",)


def run_layer(
    ops: StockOps[P],
    w: PackedLayer,
    stream: Residual,
    state: KdaState | KvCache,
    prepared: P,
    *,
    writes: bool,
) -> tuple[Residual, torch.Tensor]:
    """One layer.

    Args:
        ops: the device's operations.
        w: the layer's weights.
        stream: what enters it.
        state: its state, advanced.
        prepared: what `ops.prepare` returned for the step.
        writes: whether it saves what enters it as a block.

    Returns:
        What leaves it, and the updated prefix [M, H] that entered it.
    """
    x, entered = ops.mix(w.attention_mix, stream, write=writes)
    a = ops.attention(w.attention, x, state, prepared)
    prefix, pending = (a, ()) if writes else (entered, (a,))
    between = Residual(prefix, pending, stream.blocks, stream.saved + writes)
    y, prefix = ops.mix(w.ffn_mix, between, write=False)
    return Residual(prefix, ops.ffn(w.ffn, y, prepared), stream.blocks, between.saved), entered
