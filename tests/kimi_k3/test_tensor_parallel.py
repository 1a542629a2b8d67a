# SPDX-License-Identifier: Apache-2.0
"""TP and DCP ranks in one process against the model that is not split.

Two statements together say that sharding is right under every policy. In float64 without rounding
every intermediate of every rank is its part of the whole one: no shard, sum or index is wrong. And
with the rounding map of spec 2.8 the sums over ranks, the only places where a split model rounds
otherwise, stay within a bound counted from those roundings.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor

from kimi_k3.assembly import shard
from kimi_k3.checkpoint import load_weights, save_checkpoint
from kimi_k3.config import PRESETS, K3Config, tiny16
from kimi_k3.mxfp4 import decode_mxfp4
from kimi_k3.random_init import random_weights
from kimi_k3.ranks import Communicator, SingleRank, run_ranks
from kimi_k3.reference.context import Context
from kimi_k3.reference.ffn import gated_ffn
from kimi_k3.reference.hooks import LAYER_HOOKS, STEP_HOOKS, Recorder
from kimi_k3.reference.kda import kda
from kimi_k3.reference.latent_moe import latent_moe
from kimi_k3.reference.linear import linear
from kimi_k3.reference.mla import mla
from kimi_k3.reference.model import Model
from kimi_k3.reference.state import (
    CacheShape,
    KdaState,
    KvCache,
    PageWindow,
    SlotWindow,
    allocate,
)
from kimi_k3.rounding import Rounding, exact, specialized, stock
from kimi_k3.sharding import Sharding
from kimi_k3.weights import DenseWeights, KdaWeights, MlaWeights, ModelWeights
from tests.kimi_k3.builders import moe_of
from tests.kimi_k3.reference.builders import PAGE, Draw, Server, widened

SPLITS = [("tiny", 2), ("tiny", 4), ("tiny16", 8), ("tiny16", 16)]
F64 = exact(torch.float64)
PROMPTS = ([7, 3, 41], [9])  # under DCP the second leaves all ranks but one without a token
NO_TOKENS = 0

HEADS = {
    *("kda.gate", "kda.q", "kda.k", "kda.v", "kda.raw", "kda.log_decay", "kda.beta"),
    *("kda.u", "kda.o", "kda.attn"),
    *("mla.gate", "mla.qn", "mla.qr", "mla.ql", "mla.query", "mla.lse", "mla.z", "mla.attn"),
    *("dense.hidden", "shared.hidden"),
}
"""A rank has some of the columns: joined along dimension 1."""
PAIRS = {"dense.gate_up", "shared.gate_up"}
"""Gate, then up, each divided: joined along dimension 2."""
PACKED = {"kda.projected", "mla.projected"}
"""Some columns are divided, some whole on every rank."""
THIRDS = {"kda.qkv", "kda.conv"}
"""q, k and v side by side, each divided."""
SUMS = {
    *("attention.partial", "dense.partial", "shared.partial", "moe.latent_partial", "moe.rows"),
}
"""Every rank has a term of the whole."""
EXPERT_SLICES = {"moe.hidden"}
"""Some of each expert's columns, along dimension 2, and zeros where the slice is padding."""
SAME = LAYER_HOOKS.keys() | STEP_HOOKS.keys()
SAME -= HEADS | PAIRS | PACKED | THIRDS | SUMS | EXPERT_SLICES
"""Whole on every rank, with the same bits."""


def bits(x: Tensor) -> bytes:
    return x.contiguous().view(torch.uint8).numpy().tobytes()


@cache
def whole_weights(name: str) -> ModelWeights:
    return random_weights(PRESETS[name]())


@dataclass
class Trace:
    """What one rank saw: the intermediates of each recorded step, and its state afterwards."""

    server: Server
    steps: list[dict[str, Tensor]] = field(default_factory=list)

    def step(self, tokens: list[list[int]], lengths: list[int], accepted: list[int]) -> None:
        recorder = Recorder()
        self.server.step(tokens, lengths, accepted, tap=recorder)
        self.steps.append(recorder.values)


def play(model: Model, kv: KvCache | None = None) -> Trace:
    """Prompts by token, two verify windows with different acceptance, a plain step; request 2
    is padding all the time."""
    trace = Trace(Server(model, 3, draft=3, length_limit=24, kv=kv))
    for request, prompt in enumerate(PROMPTS):
        trace.server.prefill(request, prompt)
    trace.step([[5, 9, 2, 6], [1, 1, 30, 4], [8] * 4], [7, 5, NO_TOKENS], [1, 1, 1])
    trace.step([[11, 3, 0], [60, 61, 62], [8] * 3], [8, 8, NO_TOKENS], [2, 4, 1])
    trace.step([[17], [23], [8]], [9, 7, NO_TOKENS], [3, 1, 1])
    return trace


def played(
    name: str,
    rounding: Rounding,
    tp: int,
    dcp: int = 1,
    interleave: int = 1,
) -> list[Trace]:
    config = PRESETS[name]()
    kv = KvCache(torch.empty(0, dtype=rounding.stored), interleave=interleave)

    def rank(comm: Communicator) -> Trace:
        share = widened(shard(whole_weights(name), config, tp, comm.rank), rounding.compute)
        context = Context(config, rounding, comm, comm if dcp > 1 else SingleRank())
        return play(Model(context, share), kv)

    return run_ranks(tp, rank)


@cache
def alone(name: str) -> Trace:
    config = PRESETS[name]()
    return play(Model(Context(config, F64), widened(whole_weights(name), torch.float64)))


def joined_packed(hook: str, parts: Sequence[Tensor], config: K3Config) -> Tensor:
    """Columns q, k, v, g, f, b of KDA, or qa with c and kr, and gate, of MLA."""
    c, tp = config, len(parts)
    widths = [*[c.kda_width // tp] * 4, c.kda_head_dim, c.kda_num_heads // tp]
    whole = 4
    if hook == "mla.projected":
        widths, whole = [c.q_lora_rank + c.kv_row, c.mla_width // tp], 0
    columns = [*zip(*(part.split(widths, dim=1) for part in parts), strict=True)]
    assert all(bits(own) == bits(columns[whole][0]) for own in columns[whole])
    columns[whole] = columns[whole][:1]
    return torch.cat([own for column in columns for own in column], dim=1)


def joined(name: str, parts: Sequence[Tensor], config: K3Config) -> Tensor:
    """The whole intermediate that the ranks hold parts of."""
    hook = name.split(".", 2)[2] if name.startswith("layer.") else name
    if hook in HEADS:
        return torch.cat(list(parts), dim=1)
    if hook in PAIRS:
        return torch.cat(list(parts), dim=2)
    if hook in EXPERT_SLICES:
        live = config.moe_intermediate_size // len(parts)
        assert not any(bool(part[:, :, live:].any()) for part in parts)
        return torch.cat([part[:, :, :live] for part in parts], dim=2)
    if hook in PACKED:
        return joined_packed(hook, parts, config)
    if hook in THIRDS:
        thirds = zip(*(part.chunk(3, 1) for part in parts), strict=True)
        return torch.cat([torch.cat(third, 1) for third in thirds], 1)
    if hook in SUMS:
        return torch.stack(list(parts)).sum(0)
    assert all(bits(part) == bits(parts[0]) for part in parts), f"{name} differs between ranks"
    return parts[0]


def distance(got: Tensor, want: Tensor) -> float:
    """Relative L2."""
    assert got.shape == want.shape
    assert torch.isfinite(got).all()
    return float((got.double() - want.double()).norm() / want.double().norm().clamp(min=1e-300))


ANOTHER_ORDER = 2.0**-33
"""Of float64 sums. Sums of n terms in two orders differ by at most 2 n 2^-53 times the sum of the
terms' sizes, which for terms of random sign is about sqrt(n) times the result: 2^-38.5 for the
longest sums here, n = 512. In six layers and the head about 40 sums follow one another; the mixes
and norms between them do not expand. 40 x 2^-38.5 is 2^-33. One value rounded to FP32 (2^-25) is
far outside."""


@pytest.mark.parametrize("shared_cache", [False, True], ids=["dcp 1", "dcp tp"])
@pytest.mark.parametrize(("name", "tp"), SPLITS)
def test_every_intermediate_of_the_ranks_is_a_part_of_the_whole_one(
    name: str, tp: int, shared_cache: bool
) -> None:
    want, got = alone(name), played(name, F64, tp, tp if shared_cache else 1)
    seen = set()
    for index, whole in enumerate(want.steps):
        for hook, value in whole.items():
            both = joined(hook, [trace.steps[index][hook] for trace in got], PRESETS[name]())
            assert distance(both, value) < ANOTHER_ORDER, hook
            if hook.endswith("moe.ids"):
                assert torch.equal(both, value)
            seen.add(hook.split(".", 2)[2] if hook.startswith("layer.") else hook)
    assert seen == LAYER_HOOKS.keys() | STEP_HOOKS.keys()
    same_states(want, got)
    same_rows(want, got, lengths=[9, 8], dcp=tp if shared_cache else 1, interleave=1)


def same_states(want: Trace, got: list[Trace]) -> None:
    for index, whole in enumerate(want.server.caches.layers):
        if isinstance(whole, KdaState):
            parts = [trace.server.caches.layers[index] for trace in got]
            states = [part for part in parts if isinstance(part, KdaState)]
            heads = torch.cat([state.recurrent for state in states], dim=1)
            assert distance(heads, whole.recurrent) < ANOTHER_ORDER
            thirds = zip(*(state.conv.chunk(3, 1) for state in states), strict=True)
            conv = torch.cat([torch.cat(third, 1) for third in thirds], 1)
            assert distance(conv, whole.conv) < ANOTHER_ORDER


def same_rows(want: Trace, got: list[Trace], lengths: list[int], dcp: int, interleave: int) -> None:
    """Position p lies on rank p // interleave mod dcp, after that rank's earlier positions; with
    dcp 1 on all. No rank has written anything else."""
    for index, whole in enumerate(want.server.caches.layers):
        if not isinstance(whole, KvCache):
            continue
        for rank, trace in enumerate(got):
            cache = trace.server.caches.layers[index]
            assert isinstance(cache, KvCache)
            written = 0
            for request, length in enumerate(lengths):
                table = trace.server.tables[request]
                own = [p for p in range(length) if dcp == 1 or p // interleave % dcp == rank]
                rows = cache.pages[table].flatten(0, 1)[: len(own)]
                whole_rows = whole.pages[want.server.tables[request]].flatten(0, 1)
                assert distance(rows, whole_rows[own]) < ANOTHER_ORDER or not own
                written += len(own)
            assert int(cache.pages.any(2).sum()) == written


@pytest.mark.parametrize("interleave", [2, 3, PAGE])
def test_ranks_may_hold_several_tokens_in_a_row(interleave: int) -> None:
    want, got = alone("tiny"), played("tiny", F64, 4, 4, interleave)
    for index, whole in enumerate(want.steps):
        for trace in got:
            assert distance(trace.steps[index]["logits"], whole["logits"]) < ANOTHER_ORDER
    same_rows(want, got, lengths=[9, 8], dcp=4, interleave=interleave)


NEAR = {
    "layer.0.attention": (2.0**-6, 2.0**-6),
    "layer.0.delta": (2.0**-6, 2.0**-6),
    "layer.1.attention": (2.0**-5, 2.0**-5),
    "layer.1.moe.shared": (2.0**-5, 2.0**-5),
    "layer.1.moe.latent": (2.0**-5, 2.0**-3),
}
"""Relative L2 from float64 and one rank, under `stock()` and `specialized()`. A BF16 rounding is
2^-9 in the mean, and a block of the whole model passes about eight: 2^-9 x sqrt(8) < 2^-7. The
rounded shares of the ranks add up in the mean to one more, as the shares of n ranks are about
1 / sqrt(n) of the sum. The second layer has twice as many behind it, and e4m3 is 2^-4 per value."""


@pytest.mark.parametrize(
    ("name", "tp", "dcp", "policy"),
    [("tiny", 2, 1, stock()), ("tiny", 4, 4, stock()), ("tiny16", 16, 1, specialized())],
    ids=["tiny-2-stock", "tiny-4-dcp-stock", "tiny16-16-specialized"],
)
def test_as_served_all_ranks_hold_the_same_bits_of_rank_order_sums_near_float64(
    name: str, tp: int, dcp: int, policy: Rounding
) -> None:
    got = played(name, policy, tp, dcp)
    sums = {
        "attention": ("attention.partial", policy.reduced),
        "moe.shared": ("shared.partial", policy.reduced),
        "moe.latent": ("moe.latent_partial", policy.reduced_latent),
    }
    checked = 0
    for step in range(len(got[0].steps)):
        values = [trace.steps[step] for trace in got]
        for hook in values[0]:
            short = hook.split(".", 2)[2] if hook.startswith("layer.") else hook
            if short in SAME:
                joined(hook, [v[hook] for v in values], PRESETS[name]())
            if short in sums:
                part, rounded = sums[short]
                terms = [v[hook.removesuffix(short) + part] for v in values]
                assert all(torch.equal(term.bfloat16().to(term.dtype), term) for term in terms)
                total = terms[0]
                for term in terms[1:]:
                    total = total + term
                assert bits(values[0][hook]) == bits(rounded(total)), hook
                checked += 1
    assert checked == 3 * (6 + 5 + 5)
    for hook, bounds in NEAR.items():
        bound = bounds[policy.name == "specialized"]
        assert 2.0**-11 < distance(got[0].steps[0][hook], alone(name).steps[0][hook]) < bound


U = 2.0**-8
"""The largest relative error of one rounding to BF16, which has eight significant bits."""
SLACK = 1 + 2.0**-6
"""The bounds use rounded sizes in place of exact ones, which are larger by at most U each."""


def in_float64(policy: Rounding) -> Rounding:
    """The policy's rounding points with float64 between them: all that differs is the points."""
    return replace(policy, compute=torch.float64, recurrent=torch.float64)


Block = Callable[[Context, ModelWeights, Tensor], Tensor]


def kda_block(ctx: Context, w: ModelWeights, x: Tensor) -> Tensor:
    layer = w.layers[0].attention
    assert isinstance(layer, KdaWeights)
    state = allocate(ctx.config, w, ctx.rounding, CacheShape(9, 1, PAGE, 3)).layers[0]
    assert isinstance(state, KdaState)
    return kda(ctx, layer, x, state, SlotWindow(4, torch.arange(1, 9).view(2, 4), torch.ones(2)))


def mla_block(ctx: Context, w: ModelWeights, x: Tensor) -> Tensor:
    layer = w.layers[3].attention
    assert isinstance(layer, MlaWeights)
    cache = allocate(ctx.config, w, ctx.rounding, CacheShape(2, 4, PAGE, 0)).layers[3]
    assert isinstance(cache, KvCache)
    window = PageWindow(8, torch.tensor([[3, 1]]), torch.tensor([8]))
    return mla(ctx, layer, x, cache, window)


def dense_block(ctx: Context, w: ModelWeights, x: Tensor) -> Tensor:
    layer = w.layers[0].ffn
    assert isinstance(layer, DenseWeights)
    return gated_ffn(ctx, layer, x, "dense")


def moe_block(ctx: Context, w: ModelWeights, x: Tensor) -> Tensor:
    return latent_moe(ctx, moe_of(w, 1), x)


def run_block(
    block: Block, config: K3Config, weights: ModelWeights, policy: Rounding, tp: int, dcp: int = 1
) -> tuple[list[dict[str, Tensor]], Tensor]:
    """The intermediates of each rank, and the output, which is the same on all."""
    x = Draw(5).normal(8, config.hidden_size).to(policy.compute)

    def rank(comm: Communicator) -> tuple[dict[str, Tensor], Tensor]:
        share, tap = shard(weights, config, tp, comm.rank), Recorder()
        context = Context(config, policy, comm, comm if dcp > 1 else SingleRank(), tap)
        return tap.values, block(context, widened(share, policy.compute), x)

    results = run_ranks(tp, rank)
    assert len({bits(y) for _, y in results}) == 1
    return [values for values, _ in results], results[0][1]


def sizes(parts: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(parts)).abs().sum(0)


@pytest.mark.parametrize("policy", [stock(), specialized()], ids=lambda p: p.name)
@pytest.mark.parametrize(("name", "tp"), SPLITS)
@pytest.mark.parametrize(
    ("block", "before", "part"),
    [
        (kda_block, "kda.attn", "attention.partial"),
        (mla_block, "mla.attn", "attention.partial"),
        (dense_block, "dense.hidden", "dense.partial"),
    ],
)
def test_a_sum_over_ranks_differs_by_its_roundings_and_no_more(
    block: Block, before: str, part: str, name: str, tp: int, policy: Rounding
) -> None:
    """The whole model rounds a sum once. A split one rounds each rank's share, then the sum:
    |difference| <= U (sum of |shares| + |split sum| + |whole sum|), element by element."""
    config, weights, policy = PRESETS[name](), whole_weights(name), in_float64(policy)
    (whole,), want = run_block(block, config, weights, policy, 1)
    ranks, got = run_block(block, config, weights, policy, tp)
    assert torch.equal(torch.cat([r[before] for r in ranks], 1), whole[before])
    bound = U * (sizes([r[part] for r in ranks]) + got.abs() + want.abs()) * SLACK
    difference = (got - want).abs()
    assert (difference <= bound).all()
    assert distance(got, want) > 2.0**-12  # the shares are rounded at all


@pytest.mark.parametrize("policy", [stock(), specialized()], ids=lambda p: p.name)
@pytest.mark.parametrize(("name", "tp"), SPLITS)
def test_the_latent_differs_by_the_roundings_of_its_rows_and_shares(
    name: str, tp: int, policy: Rounding
) -> None:
    """Rows of an expert's slice, their weighted sum per rank, and the sum over ranks are rounded:
    |difference| <= U (sum over ranks and slots of weight |row| + sum of |shares| + |L|), and the
    same three terms for the whole model. Routing and quantised inputs are equal bit by bit."""
    config, weights, policy = PRESETS[name](), whole_weights(name), in_float64(policy)
    (whole,), _ = run_block(moe_block, config, weights, policy, 1)
    ranks, _ = run_block(moe_block, config, weights, policy, tp)
    for hook in ("moe.logits", "moe.ids", "moe.weights", "moe.z"):
        assert all(bits(r[hook]) == bits(whole[hook]) for r in ranks)
    assert torch.equal(torch.cat([r["shared.hidden"] for r in ranks], 1), whole["shared.hidden"])

    def roundings(parts: Sequence[dict[str, Tensor]]) -> Tensor:
        rows = [(r["moe.weights"][:, :, None] * r["moe.rows"].abs()).sum(1) for r in parts]
        shares = [r["moe.latent_partial"] for r in parts]
        return U * (sizes(rows) + sizes(shares) + parts[0]["moe.latent"].abs())

    difference = (ranks[0]["moe.latent"] - whole["moe.latent"]).abs()
    assert (difference <= (roundings(ranks) + roundings([whole])) * SLACK).all()
    shared = (ranks[0]["moe.shared"] - whole["moe.shared"]).abs()
    shares = sizes([r["shared.partial"] for r in ranks])
    both = ranks[0]["moe.shared"].abs() + whole["moe.shared"].abs()
    assert (shared <= U * (shares + both) * SLACK).all()


def test_shards_of_a_cache_differ_by_one_more_rounding_of_their_part() -> None:
    """Under DCP each rank's z is rounded before the merge, where the parts' weights add to 1. The
    whole model rounds z twice too, the second time to no effect:
    |difference| <= U (largest |z| of a part + |z| of both)."""
    config, weights, policy = PRESETS["tiny"](), whole_weights("tiny"), in_float64(stock())
    (whole,), _ = run_block(mla_block, config, weights, policy, 1)
    ranks, _ = run_block(mla_block, config, weights, policy, 4, dcp=4)
    got = torch.cat([r["mla.z"] for r in ranks], 1)
    largest = whole["mla.c"].abs().amax(0)  # of any key, and so of z of any part
    bound = U * (largest + got.abs() + whole["mla.z"].abs()) * SLACK
    assert ((got - whole["mla.z"]).abs() <= bound).all()
    assert not torch.equal(got, whole["mla.z"])


EXPERTS = {"stock": stock(), "specialized": specialized()}


def padded16() -> K3Config:
    """At TP 16 half of each expert slice is padding."""
    return replace(tiny16(), min_expert_partition=64)


@pytest.mark.parametrize("policy", EXPERTS.values(), ids=EXPERTS.keys())
def test_garbage_in_padded_columns_of_an_expert_does_not_leak(policy: Rounding) -> None:
    """The hidden row of an expert is written over where it is padding, before W2 reads it."""
    config, weights = padded16(), whole_weights("tiny16")
    live = Sharding(config, 16, 0).expert_width

    def spoiled(first: int, garbage: float) -> Rounding:
        def hidden(h: Tensor) -> Tensor:
            assert h.shape[1] == 2 * live
            dirty = policy.expert_hidden(h).clone()
            dirty[:, first:] = garbage
            return dirty

        return replace(policy, expert_hidden=hidden)

    _, want = run_block(moe_block, config, weights, policy, 16)
    _, narrow = run_block(moe_block, tiny16(), weights, policy, 16)
    assert bits(narrow) == bits(want)
    for garbage in (3.0e38, -448.0):
        _, got = run_block(moe_block, config, weights, spoiled(live, garbage), 16)
        assert bits(got) == bits(want)
    _, leaked = run_block(moe_block, config, weights, spoiled(live - 1, -448.0), 16)
    assert bits(leaked) != bits(want)


@pytest.mark.parametrize("policy", EXPERTS.values(), ids=EXPERTS.keys())
def test_garbage_weights_in_padded_rows_of_an_expert_do_not_leak(policy: Rounding) -> None:
    """Then the padded columns of the hidden row are what the garbage computes, MXFP8 included."""
    config, weights, d = padded16(), whole_weights("tiny16"), Draw(9)
    share = shard(weights, config, 16, 5)
    experts = moe_of(share, 1).experts
    live, padded = 32, 64
    assert (Sharding(config, 16, 5).expert_width, experts.w2_packed.shape[2]) == (live, padded // 2)
    padding = decode_mxfp4(
        experts.w2_packed[:, :, live // 2 :], experts.w2_scale[:, :, 1:], torch.float32
    )
    assert (padding == 0).all()
    assert (experts.w2_scale[:, :, 1:] == 127).all()
    packed, scale = experts.w13_packed.clone(), experts.w13_scale.clone()
    for first in (live, padded + live):  # padded gate rows, padded up rows
        packed[:, first : first + 32] = d.bytes(0, 256, *packed[:, :32].shape)
        scale[:, first : first + 32] = d.bytes(100, 150, *scale[:, :32].shape)
    spoiled = replace(
        moe_of(share, 1), experts=replace(experts, w13_packed=packed, w13_scale=scale)
    )
    y = Draw(6).normal(8, config.hidden_size).float()
    context = Context(config, policy)
    want = latent_moe(context, moe_of(share, 1), y)
    assert bits(latent_moe(context, spoiled, y)) == bits(want)


def test_packed_projections_of_sixteen_ranks_give_the_intermediates_with_garbage_in_padding() -> (
    None
):
    """Rows of padding hold garbage weights; cutting the rows as `Sharding` says drops them."""
    config, tp, d = tiny16(), 16, Draw(2, torch.float64)
    x = d.normal(3, config.hidden_size)
    whole = widened(whole_weights("tiny16"), torch.float64)
    k, moe, dense = whole.layers[0].attention, moe_of(whole, 1), whole.layers[0].ffn
    assert isinstance(k, KdaWeights)
    assert isinstance(dense, DenseWeights)
    logits, z, beta, down = [], [], [], []
    for rank in range(tp):
        s = Sharding(config, tp, rank)
        own = widened(shard(whole_weights("tiny16"), config, tp, rank), torch.float64)
        mine, ffn = own.layers[0].attention, own.layers[0].ffn
        assert isinstance(mine, KdaWeights)
        assert isinstance(ffn, DenseWeights)
        experts = slice(rank * s.router_live_rows, (rank + 1) * s.router_live_rows)
        columns = slice(rank * s.latent_rows, (rank + 1) * s.latent_rows)
        garbage = 1e30 * d.normal(s.router_rows - s.router_live_rows, config.hidden_size)
        front = torch.cat([moe.router[experts], garbage, moe.latent_down[columns]])
        assert len(front) == s.front_rows
        out = linear(x, front)
        logits.append(out[:, : s.router_live_rows])
        z.append(out[:, s.router_rows :])
        garbage = 1e30 * d.normal(s.kda_in_rows - s.kda_in_live_rows, config.hidden_size)
        rows = (mine.q_proj, mine.k_proj, mine.v_proj, mine.g_proj, mine.f_a_proj, mine.b_proj)
        out = linear(x, torch.cat([*rows, garbage]))
        assert out.shape[1] == s.kda_in_rows == 96
        beta.append(out[:, s.kda_in_live_rows - s.kda_heads : s.kda_in_live_rows])
        hidden = linear(x, ffn.gate_proj)
        zeros = torch.zeros(config.hidden_size, s.dense_padded_width - s.dense_width)
        assert zeros.shape[1] == 128 - 12
        hidden = torch.cat([hidden, 1e30 * d.normal(3, zeros.shape[1])], 1)
        down.append(linear(hidden, torch.cat([ffn.down_proj, zeros.double()], 1)))
    for got, want in (
        (torch.cat(logits, 1), linear(x, moe.router)),
        (torch.cat(z, 1), linear(x, moe.latent_down)),
        (torch.cat(beta, 1), linear(x, k.b_proj)),
        (torch.stack(down).sum(0), linear(linear(x, dense.gate_proj), dense.down_proj)),
    ):
        assert distance(got, want) < ANOTHER_ORDER


def test_ranks_that_read_a_checkpoint_with_padded_a_log_agree_with_the_whole(
    tmp_path: Path,
) -> None:
    config, whole = tiny16(), whole_weights("tiny16")
    save_checkpoint(whole, tmp_path, config, shards=2)
    assert config.a_log_padding == 2 * config.kda_num_heads  # cut in 16, each rank would get 2

    def rank(comm: Communicator) -> tuple[Tensor, Tensor]:
        share = load_weights(tmp_path, config, comm.size, comm.rank)
        first = share.layers[0].attention
        assert isinstance(first, KdaWeights)
        model = Model(Context(config, F64, comm), widened(share, torch.float64))
        return first.a_log, Server(model, 1, draft=0).step([[7]], [1], [1]).logits

    results = run_ranks(16, rank)
    live = whole.layers[0].attention
    assert isinstance(live, KdaWeights)
    assert torch.equal(torch.cat([a_log for a_log, _ in results]), live.a_log)
    model = Model(Context(config, F64), widened(whole, torch.float64))
    want = Server(model, 1, draft=0).step([[7]], [1], [1]).logits
    for _, logits in results:
        assert distance(logits, want) < ANOTHER_ORDER
