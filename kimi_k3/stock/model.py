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

import torch

from kimi_k3.config import K3Config
from kimi_k3.packed import PackedModel
from kimi_k3.reference.state import Caches
from kimi_k3.step import Step, StepOutput
from kimi_k3.stock.ops import Residual, StockOps


@dataclass(frozen=True)
class StockModel:
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
    ops: StockOps
    aux_layers: tuple[int, ...] = ()

    def step(self, step: Step) -> StepOutput:
        """See `kimi_k3.step.Backend`."""
        ops, streams = self.ops, []
        residual = Residual(ops.embed(step.token_ids), (), ops.blocks(step.shape.rows), 0)
        for index, layer in enumerate(self.weights.layers):
            write = self.config.writes_block(index)
            x, prefix = ops.mix(layer.attention_mix, residual, write=write)
            streams.append(prefix)  # what enters a layer is the stream after the one before
            a = ops.attention(layer.attention, x, self.caches.layers[index], step)
            saved = residual.saved + write
            start, pending = (a, ()) if write else (prefix, (a,))
            residual = Residual(start, pending, residual.blocks, saved)
            y, prefix = ops.mix(layer.ffn_mix, residual, write=False)
            residual = Residual(prefix, ops.ffn(layer.ffn, y), residual.blocks, saved)
        hidden, prefix = ops.mix(self.weights.final_mix, residual, write=False)
        streams.append(prefix)
        wanted = step.shape.logit_rows()
        rows = hidden if len(wanted) == step.shape.rows else hidden[wanted]
        aux = tuple(streams[index + 1] for index in self.aux_layers)
        return StepOutput(hidden, aux, ops.logits(rows))

    def providers(self) -> tuple[str, ...]:
        """See `kimi_k3.step.Backend`."""
        return ("stock",)
