# SPDX-License-Identifier: Apache-2.0
"""One step of the model: the depth loop of spec 2.1 over the blocks.

    prefix = embed(token);  delta = none
    for each layer l:
        prefix = prefix + delta;   x = AttnRes(blocks, prefix)
        if l writes a block:  blocks += prefix
        a = Attention_l(x)
        prefix, pending = (a, none) after a block write, else (prefix, a)
        prefix = prefix + pending; y = AttnRes(blocks, prefix)
        delta = FFN_l(y)
    h = AttnRes(blocks, prefix + delta), without output norm
    logits = W_lm_head RMSNorm(h)

A layer that writes a block mixes the earlier blocks and the prefix before attention; the block it
has just written joins the mix before the FFN, where attention's output has become the prefix.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from kimi_k3.reference.attn_res import (
    mix,
    normed_mix,
    score,
    score_weight,
    stack_sources,
    update_prefix,
)
from kimi_k3.reference.context import Context
from kimi_k3.reference.ffn import gated_ffn
from kimi_k3.reference.head import embed, head
from kimi_k3.reference.hooks import NoTap, Tap
from kimi_k3.reference.kda import kda
from kimi_k3.reference.latent_moe import latent_moe
from kimi_k3.reference.mla import mla
from kimi_k3.reference.state import Caches, KdaState, KvCache, PageWindow, SlotWindow
from kimi_k3.weights import DenseWeights, KdaWeights, LayerWeights, MlaWeights, ModelWeights

NO_TAP = NoTap()


@dataclass(frozen=True)
class StepOutput:
    """What one step returns, row by row."""

    hidden: torch.Tensor
    """[M, H] h, before the last norm."""
    aux: tuple[torch.Tensor, ...]
    """[M, H] the residual stream after each of `Model.aux_layers`, for a drafter."""
    logits: torch.Tensor
    """[M, V]."""


@dataclass(frozen=True)
class Stream:
    """What the depth loop carries from layer to layer."""

    prefix: torch.Tensor
    """[M, H] the running sum since the last block write."""
    delta: torch.Tensor | None
    """[M, H] the FFN output that is still to be added; None before the first layer."""
    blocks: tuple[torch.Tensor, ...] = ()
    """[M, H] each: the saved blocks, oldest first."""


@dataclass(frozen=True)
class Windows:
    """Where one step reads and writes its state."""

    slots: SlotWindow
    pages: PageWindow


@dataclass(frozen=True)
class Model:
    """The reference model on one rank.

    Attributes:
        ctx: configuration, rounding policy and ranks.
        weights: this rank's weights.
        aux_layers: layers whose residual stream `StepOutput.aux` carries, in this order.
    """

    ctx: Context
    weights: ModelWeights
    aux_layers: tuple[int, ...] = ()

    def step(
        self,
        token_ids: torch.Tensor,
        q: int,
        caches: Caches,
        *,
        slots: torch.Tensor,
        accepted: torch.Tensor,
        block_table: torch.Tensor,
        lengths: torch.Tensor,
        tap: Tap = NO_TAP,
    ) -> StepOutput:
        """Run `q` tokens of each of R requests; plain decode is `q` = 1.

        Args:
            token_ids: [M = R q] tokens, request by request.
            q: rows per request.
            caches: advanced in place, as the backends do.
            slots: [R, >= q] see `SlotWindow`.
            accepted: [R] see `SlotWindow`.
            block_table: [R, pages] see `PageWindow`.
            lengths: [R] tokens of each request including the new ones; 0 for padding.
            tap: where intermediates go.

        Raises:
            ValueError: shapes that do not fit, or a request that is padding for one kind of
                layer and live for the other.
        """
        windows = Windows(SlotWindow(q, slots, accepted), PageWindow(q, block_table, lengths))
        live = windows.slots.live
        if token_ids.shape != (len(slots) * q,) or not torch.equal(live, windows.pages.live):
            raise ValueError("token_ids, slots and lengths speak of different requests")
        stream = Stream(tap("embedding", embed(self.ctx, self.weights, token_ids)), None)
        aux = {}
        for index, layer in enumerate(self.weights.layers):
            ctx = self.ctx.tapped(tap.under(f"layer.{index}"))
            writes = ctx.config.writes_block(index)
            attend = partial(_attention, ctx, layer, caches.layers[index], windows)
            stream = _layer(ctx, layer, stream, writes, attend)
            if index in self.aux_layers:
                aux[index] = update_prefix(ctx.rounding, stream.prefix, stream.delta)  # [M, H]
        ctx = self.ctx.tapped(tap)
        hidden = _final_mix(ctx, self.weights, stream)  # [M, H]
        logits = tap("logits", head(ctx, self.weights, hidden))  # [M, V]
        return StepOutput(hidden, tuple(aux[index] for index in self.aux_layers), logits)

    def prefill(
        self, token_ids: torch.Tensor, caches: Caches, slot: int, table: torch.Tensor
    ) -> StepOutput:
        """Take in a prompt [T] token by token, into a reset `slot` and the pages of `table`.

        Returns the last token's output; the next step has `accepted` 1.

        Raises:
            ValueError: the prompt is empty.
        """
        if len(token_ids) == 0:
            raise ValueError("an empty prompt has no last token")
        caches.reset(slot)
        one = torch.ones(1, dtype=torch.long, device=token_ids.device)
        for position in range(len(token_ids)):
            output = self.step(
                token_ids[position : position + 1],
                1,
                caches,
                slots=one[None] * slot,
                accepted=one,
                block_table=table[None],
                lengths=one * (position + 1),
            )
        return output


def _layer(
    ctx: Context,
    w: LayerWeights,
    stream: Stream,
    writes: bool,
    attend: Callable[[torch.Tensor], torch.Tensor],
) -> Stream:
    """One layer, around its attention block."""
    r, tap, blocks = ctx.rounding, ctx.tap, stream.blocks
    prefix = tap("attn_res.prefix", update_prefix(r, stream.prefix, stream.delta))  # [M, H]
    w_score = score_weight(w.self_attention_res_norm, w.self_attention_res_proj, r.compute)
    mixed = _mix(ctx, "attn_res", stack_sources(blocks, prefix), w_score)  # [M, H]
    x = tap("attn_res.x", normed_mix(r, mixed, w.input_layernorm, ctx.config.rms_norm_eps))
    a = attend(x)  # [M, H]
    if writes:
        prefix, blocks = a, (*blocks, prefix)
    else:
        prefix = update_prefix(r, prefix, a)
    tap("ffn_res.prefix", prefix)
    w_score = score_weight(w.mlp_res_norm, w.mlp_res_proj, r.compute)
    mixed = _mix(ctx, "ffn_res", stack_sources(blocks, prefix), w_score)  # [M, H]
    y = normed_mix(r, mixed, w.post_attention_layernorm, ctx.config.rms_norm_eps)
    return Stream(prefix, tap("delta", _ffn(ctx, w, tap("ffn_res.y", y))), blocks)


def _mix(ctx: Context, name: str, sources: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """The mix [M, H] of sources [M, n, H] under score weight `w` [H], before any rounding."""
    logit = ctx.tap(f"{name}.logit", score(sources, w, ctx.config.rms_norm_eps))  # [M, n]
    return ctx.tap(f"{name}.mix", mix(logit, sources))  # [M, H]


def _attention(
    ctx: Context,
    w: LayerWeights,
    state: KdaState | KvCache,
    windows: Windows,
    x: torch.Tensor,
) -> torch.Tensor:
    """The layer's attention block, with the state of its kind."""
    match w.attention, state:
        case KdaWeights(), KdaState():
            return kda(ctx, w.attention, x, state, windows.slots)
        case MlaWeights(), KvCache():
            return mla(ctx, w.attention, x, state, windows.pages)
        case _:
            raise ValueError("the caches were allocated for another model")


def _ffn(ctx: Context, w: LayerWeights, y: torch.Tensor) -> torch.Tensor:
    """The layer's FFN: dense or a mixture of experts."""
    if isinstance(w.ffn, DenseWeights):
        return gated_ffn(ctx, w.ffn, y, "dense")
    return latent_moe(ctx, w.ffn, y)


def _final_mix(ctx: Context, w: ModelWeights, stream: Stream) -> torch.Tensor:
    """H [M, H]: the last AttnRes, over all blocks, without output norm."""
    r = ctx.rounding
    prefix = ctx.tap("final.prefix", update_prefix(r, stream.prefix, stream.delta))  # [M, H]
    w_score = score_weight(w.output_attn_res_norm, w.output_attn_res_proj, r.compute)  # [H]
    mixed = _mix(ctx, "final", stack_sources(stream.blocks, prefix), w_score)  # [M, H]
    return ctx.tap("final.hidden", normed_mix(r, mixed, None, ctx.config.rms_norm_eps))
