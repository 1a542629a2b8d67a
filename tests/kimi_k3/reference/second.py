# SPDX-License-Identifier: Apache-2.0
"""The model once more, in numpy and float64, over whole sequences and without any cache.

Written from the specification by other algebra than the reference, and importing none of it: the
convolution looks into the full history, the recurrence is the matrix form, MLA expands every key
and value, the mixture evaluates all experts under a mask, and the residual stream is a list of
contributions that are summed block by block.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from kimi_k3.config import K3Config
from kimi_k3.weights import (
    DenseWeights,
    ExpertWeights,
    KdaWeights,
    MlaWeights,
    ModelWeights,
    MoeWeights,
)

Array = NDArray[np.float64]


def a(x: Tensor) -> Array:
    """A weight as float64."""
    return x.double().numpy()


def sigmoid(x: Array) -> Array:
    return np.exp(-np.logaddexp(0, -x))


def rms(x: Array, weight: Array, eps: float) -> Array:
    return weight * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps)


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def situ(c: K3Config, g: Array, u: Array) -> Array:
    up = u if c.situ_linear_beta is None else c.situ_linear_beta * np.tanh(u / c.situ_linear_beta)
    return c.situ_beta * np.tanh(g / c.situ_beta) * sigmoid(g) * up


def glu(c: K3Config, w: DenseWeights, x: Array) -> Array:
    return situ(c, x @ a(w.gate_proj).T, x @ a(w.up_proj).T) @ a(w.down_proj).T


@dataclass
class KdaTrace:
    """All that a KDA layer computes for one sequence."""

    states: Array
    """[T, head, value, key] after each token."""
    raw: Array
    """[T, channel] the inputs of the convolution."""
    out: Array
    """[T, H]."""
    log_decay: Array
    """[T, head, key]."""


def kda(c: K3Config, w: KdaWeights, x: Array) -> KdaTrace:
    steps, heads, d = len(x), c.kda_num_heads, c.kda_head_dim
    raw = np.concatenate([x @ a(p).T for p in (w.q_proj, w.k_proj, w.v_proj)], axis=1)
    taps = np.concatenate([a(p)[:, 0] for p in (w.q_conv, w.k_conv, w.v_conv)])
    conv = np.zeros_like(raw)
    for channel in range(raw.shape[1]):  # a convolution is a product of polynomials
        conv[:, channel] = np.convolve(raw[:, channel], taps[channel, ::-1])[:steps]
    conv *= sigmoid(conv)
    q, k, v = (part.reshape(steps, heads, d) for part in np.split(conv, 3, axis=1))
    f = (x @ a(w.f_a_proj).T @ a(w.f_b_proj).T + a(w.dt_bias)).reshape(steps, heads, d)
    rate = np.exp(a(w.a_log))[:, None]
    if c.gate_lower_bound is None:
        g = -rate * np.logaddexp(0, f)
    else:
        g = c.gate_lower_bound * sigmoid(rate * f)
    beta = sigmoid(x @ a(w.b_proj).T)
    gate = sigmoid(x @ a(w.g_proj).T).reshape(steps, heads, d)
    states, o = np.zeros((steps, heads, d, d)), np.zeros((steps, heads, d))
    for h in range(heads):
        s = np.zeros((d, d))
        for t in range(steps):
            kn = k[t, h] / np.sqrt(k[t, h] @ k[t, h] + 1e-6)
            qn = q[t, h] / np.sqrt(q[t, h] @ q[t, h] + 1e-6) / np.sqrt(d)
            forget = np.diag(np.exp(g[t, h])) @ (np.eye(d) - beta[t, h] * np.outer(kn, kn))
            s = s @ forget + beta[t, h] * np.outer(v[t, h], kn)
            states[t, h], o[t, h] = s, s @ qn
    y = (rms(o, a(w.o_norm), c.rms_norm_eps) * gate).reshape(steps, -1)
    return KdaTrace(states, raw, y @ a(w.o_proj).T, g)


@dataclass
class MlaTrace:
    """All that an MLA layer computes for one sequence."""

    rows: Array
    """[T, kv_row] what the cache holds."""
    out: Array
    """[T, H]."""


def mla(c: K3Config, w: MlaWeights, x: Array) -> MlaTrace:
    steps, heads, eps = len(x), c.mla_num_heads, c.rms_norm_eps
    nope, lat = c.qk_nope_head_dim, c.kv_lora_rank
    q = rms(x @ a(w.q_a_proj).T, a(w.q_a_layernorm), eps) @ a(w.q_b_proj).T
    q = q.reshape(steps, heads, -1)
    kv = x @ a(w.kv_a_proj).T
    latent, extra = rms(kv[:, :lat], a(w.kv_a_layernorm), eps), kv[:, lat:]
    expanded = (latent @ a(w.kv_b_proj).T).reshape(steps, heads, -1)
    o = np.zeros((steps, heads, c.v_head_dim))
    for h in range(heads):
        keys = np.concatenate([expanded[:, h, :nope], extra], axis=1)
        scores = q[:, h] @ keys.T / np.sqrt(nope + c.qk_rope_head_dim)
        causal = np.where(np.tri(steps, dtype=bool), scores, -np.inf)
        o[:, h] = softmax(causal) @ expanded[:, h, nope:]
    gated = o.reshape(steps, -1) * sigmoid(x @ a(w.g_proj).T)
    return MlaTrace(np.concatenate([latent, extra], axis=1), gated @ a(w.o_proj).T)


def e2m1(code: int) -> float:
    """The value of a code from its bits s e e m."""
    sign, exponent, mantissa = code >> 3, (code >> 1) & 3, code & 1
    size = mantissa * 0.5 if exponent == 0 else (1 + mantissa * 0.5) * 2.0 ** (exponent - 1)
    return -size if sign else size


CODE_VALUES = np.array([e2m1(code) for code in range(16)])


def mxfp4(packed: Tensor, scale: Tensor) -> Array:
    """[rows, K] weights from their bytes."""
    p, b = packed.numpy(), scale.numpy().astype(np.int64)
    values = np.zeros((p.shape[0], 2 * p.shape[1]))
    values[:, 0::2], values[:, 1::2] = CODE_VALUES[p & 15], CODE_VALUES[p >> 4]
    return values * np.repeat(np.ldexp(1.0, b - 127), 32, axis=1)


def picked(scores: Array, bias: Array, k: int) -> list[int]:
    """The ids of one row, best first, by Python's own sort."""
    key = scores + bias
    order = sorted(range(len(key)), key=lambda e: (bool(np.isnan(key[e])), -key[e], e))
    return order[:k]


def expert(c: K3Config, w: ExpertWeights, e: int, z: Array) -> Array:
    up = mxfp4(w.w13_packed[e], w.w13_scale[e])
    width = len(up) // 2
    h = situ(c, z @ up[:width].T, z @ up[width:].T)
    return h @ mxfp4(w.w2_packed[e], w.w2_scale[e]).T


def moe(c: K3Config, w: MoeWeights, y: Array) -> Array:
    scores = sigmoid(y @ a(w.router).T)
    mask = np.zeros_like(scores)
    for row in range(len(y)):
        mask[row, picked(scores[row], a(w.correction_bias), c.num_experts_per_tok)] = 1
    weights = c.routed_scaling_factor * scores * mask
    if c.norm_topk_prob:
        weights /= (scores * mask).sum(axis=1, keepdims=True)
    z = y @ a(w.latent_down).T
    latent = sum(weights[:, e, None] * expert(c, w.experts, e, z) for e in range(c.num_experts))
    normed = rms(np.asarray(latent), a(w.latent_norm), c.rms_norm_eps)
    return normed @ a(w.latent_up).T + glu(c, w.shared, y)


def attn_res(c: K3Config, sources: list[Array], norm: Tensor, proj: Tensor) -> Array:
    """The mix of one AttnRes, source by source: each scored by its own normalised self."""
    logits = [rms(s, a(norm), c.rms_norm_eps) @ a(proj)[0] for s in sources]
    alpha = softmax(np.stack(logits, axis=1))
    return np.asarray(sum(alpha[:, j, None] * s for j, s in enumerate(sources)))


@dataclass
class Trace:
    """The whole model over one sequence."""

    hidden: Array
    logits: Array
    layers: list[KdaTrace | MlaTrace] = field(default_factory=list)
    streams: list[Array] = field(default_factory=list)
    """The residual stream after each layer, since the last block write."""


def whole(c: K3Config, w: ModelWeights, tokens: list[int]) -> Trace:
    """Logits [T, V] of a sequence; blocks are sums of whole segments of contributions."""
    segments = [[a(w.embed_tokens)[tokens]]]  # segment 0: the embedding; then one per block
    trace = Trace(np.empty(0), np.empty(0))
    for index, layer in enumerate(w.layers):
        sources = [sum(segment) for segment in segments]
        mixed = attn_res(c, sources, layer.self_attention_res_norm, layer.self_attention_res_proj)
        x = rms(mixed, a(layer.input_layernorm), c.rms_norm_eps)
        done = (kda if c.is_kda(index) else mla)(c, layer.attention, x)  # type: ignore[arg-type]
        trace.layers.append(done)
        if index % c.attn_res_block_size == 0:
            segments.append([])
        segments[-1].append(done.out)
        sources = [sum(segment) for segment in segments]
        mixed = attn_res(c, sources, layer.mlp_res_norm, layer.mlp_res_proj)
        y = rms(mixed, a(layer.post_attention_layernorm), c.rms_norm_eps)
        ffn = layer.ffn
        segments[-1].append(glu(c, ffn, y) if isinstance(ffn, DenseWeights) else moe(c, ffn, y))
        trace.streams.append(np.asarray(sum(segments[-1])))
    sources = [np.asarray(sum(segment)) for segment in segments]
    trace.hidden = attn_res(c, sources, w.output_attn_res_norm, w.output_attn_res_proj)
    trace.logits = rms(trace.hidden, a(w.norm), c.rms_norm_eps) @ a(w.lm_head).T
    return trace
