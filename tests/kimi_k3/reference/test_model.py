# SPDX-License-Identifier: Apache-2.0
"""The depth loop: against the model written a second time, and verify against single steps."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from kimi_k3.config import tiny
from kimi_k3.random_init import random_weights
from kimi_k3.ranks import SingleRank
from kimi_k3.reference.context import Context
from kimi_k3.reference.hooks import LAYER_HOOKS, STEP_HOOKS, Recorder
from kimi_k3.reference.model import Model
from kimi_k3.reference.state import FP8, Caches, KdaState, KvCache
from kimi_k3.rounding import POINTS, Rounding, exact, specialized, stock
from kimi_k3.weights import DenseWeights, KdaWeights
from tests.kimi_k3.reference import second
from tests.kimi_k3.reference.builders import Server, model_weights, odd, widened

PROMPT = [7, 3, 41]
GOOD = [11, 2, 57, 0, 33, 9, 9, 28, 14, 50, 6, 1, 45, 19, 22, 8]
WRONG = 5
FP8_CACHE = KvCache(torch.empty(0, dtype=FP8), q_scale=0.5, k_scale=0.25)


def model(rounding: Rounding, aux: tuple[int, ...] = ()) -> Model:
    weights = widened(model_weights(odd(), seed=1), rounding.compute)
    return Model(Context(odd(), rounding), weights, aux)


@cache
def sequential(rounding: str, kv: bool) -> tuple[torch.Tensor, list[Caches]]:
    """Logits of each token of `GOOD` decoded alone, and the caches before and after each."""
    server = Server(model(POLICIES[rounding]), 1, draft=0, kv=FP8_CACHE if kv else None)
    server.prefill(0, PROMPT)
    logits, caches = [], [snapshot(server.caches)]
    for i, token in enumerate(GOOD):
        logits.append(server.step([[token]], [len(PROMPT) + i + 1], [1]).logits)
        caches.append(snapshot(server.caches))
    return torch.cat(logits), caches


def snapshot(caches: Caches) -> Caches:
    return Caches(
        tuple(
            KdaState(layer.recurrent.clone(), layer.conv.clone())
            if isinstance(layer, KdaState)
            else KvCache(layer.pages.clone(), layer.q_scale, layer.k_scale)
            for layer in caches.layers
        )
    )


POLICIES = {"exact": exact(torch.float32), "stock": stock(), "specialized": specialized()}


def test_decoding_token_by_token_equals_the_whole_sequence_in_other_algebra() -> None:
    tokens = PROMPT + GOOD
    want = second.whole(odd(), model_weights(odd(), seed=1), tokens)
    server = Server(model(exact(torch.float64), aux=(4, 1)), 1, draft=0)
    for t, token in enumerate(tokens):
        got = server.step([[token]], [t + 1], [1])
        np.testing.assert_allclose(got.hidden[0], want.hidden[t], atol=1e-11, rtol=1e-9)
        np.testing.assert_allclose(got.logits[0], want.logits[t], atol=1e-11, rtol=1e-9)
        np.testing.assert_allclose(got.aux[0][0], want.streams[4][t], atol=1e-11, rtol=1e-9)
        np.testing.assert_allclose(got.aux[1][0], want.streams[1][t], atol=1e-11, rtol=1e-9)
    for layer, trace in zip(server.caches.layers, want.layers, strict=True):
        if isinstance(layer, KdaState):
            assert isinstance(trace, second.KdaTrace)
            slot = int(server.slots[0, 0])
            np.testing.assert_allclose(layer.recurrent[slot], trace.states[-1], atol=1e-12)
            np.testing.assert_allclose(layer.conv[slot].T, trace.raw[-3:], atol=1e-12)
        else:
            assert isinstance(trace, second.MlaTrace)
            rows = layer.pages[server.tables[0]].flatten(0, 1)[: len(tokens)]
            np.testing.assert_allclose(rows, trace.rows, atol=1e-12)


@pytest.mark.parametrize(("policy", "kv"), [("stock", False), ("specialized", True)])
@pytest.mark.parametrize("q", range(1, 9))
def test_a_verify_window_equals_single_steps_for_every_accepted_count(
    q: int, policy: str, kv: bool
) -> None:
    """Request b accepts b + 1 of q rows; one more request is padding. All bits agree."""
    want, states = sequential(policy, kv)
    server = Server(model(POLICIES[policy]), q + 1, kv=FP8_CACHE if kv else None, seed=q)
    for request in range(q):
        server.prefill(request, PROMPT)
    start, dead = len(PROMPT), [WRONG] * q
    first = [GOOD[: b + 1] + [WRONG] * (q - b - 1) for b in range(q)]
    got = server.step([*first, dead], [start + q] * q + [0], [1] * q + [0]).logits
    for b in range(q):
        assert torch.equal(got[b * q : b * q + b + 1], want[: b + 1])
        equal_states(server, b, states[b + 1], position=b, offset=b)
    assert (got[q * q :] == got[q * q]).all()  # padding rows see only their own token
    then = [GOOD[b + 1 : b + 1 + q] for b in range(q)]
    lengths = [start + b + 1 + q for b in range(q)]
    got = server.step([*then, dead], [*lengths, 0], [*range(1, q + 1), 0]).logits
    for b in range(q):
        assert torch.equal(got[b * q : b * q + q], want[b + 1 : b + 1 + q])
        equal_states(server, b, states[b + 1 + q], position=q - 1, offset=q - 1)
        equal_rows(server, b, states[b + 1 + q], lengths[b])


def equal_states(server: Server, b: int, want: Caches, position: int, offset: int) -> None:
    """The slot that the next step would start from holds what single steps hold."""
    for got, single in zip(server.caches.layers, want.layers, strict=True):
        if isinstance(got, KdaState):
            assert isinstance(single, KdaState)
            assert torch.equal(got.recurrent[server.slots[b, position]], single.recurrent[1])
            taps = got.conv[server.slots[b, 0], :, offset : offset + 3]
            assert torch.equal(taps, single.conv[1])


def equal_rows(server: Server, b: int, want: Caches, length: int) -> None:
    """The request's cache rows hold what single steps hold; its table was shuffled otherwise."""
    single_server_table = Server(server.model, 1, draft=0).tables[0]
    for got, single in zip(server.caches.layers, want.layers, strict=True):
        if isinstance(got, KvCache):
            assert isinstance(single, KvCache)
            rows = got.read(server.tables[b], length, torch.float32)
            assert torch.equal(rows, single.read(single_server_table, length, torch.float32))


def test_a_plain_step_may_follow_a_longer_window() -> None:
    """A fallback step with fewer rows starts from the accepted slot of the longer window."""
    want, states = sequential("specialized", False)
    server = Server(model(specialized()), 1)
    server.prefill(0, PROMPT)
    server.step([[*GOOD[:3], WRONG, WRONG]], [len(PROMPT) + 5], [1])
    got = server.step([[GOOD[3]]], [len(PROMPT) + 4], [3]).logits
    assert torch.equal(got, want[3:4])
    equal_states(server, 0, states[4], position=0, offset=0)
    got = server.step([GOOD[4:6]], [len(PROMPT) + 6], [1]).logits
    assert torch.equal(got, want[4:6])


def test_slots_and_pages_may_lie_anywhere() -> None:
    want, _ = sequential("stock", False)
    for seed in range(3):
        server = Server(model(stock()), 3, seed=seed)
        for request in range(3):
            server.prefill(request, PROMPT)
        got = server.step([GOOD[:2]] * 3, [len(PROMPT) + 2] * 3, [1] * 3).logits
        assert torch.equal(got, want[:2].repeat(3, 1))


def test_padding_writes_nothing_and_leaves_the_live_rows_alone() -> None:
    """Canaries fill everything that no live request owns; null slots are poisoned with NaN."""
    live = Server(model(specialized()), 1)
    padded = Server(model(specialized()), 3)
    padded.slots[0], padded.tables[0] = live.slots[0], live.tables[0]
    for server in (live, padded):
        for layer in server.caches.layers:
            if isinstance(layer, KdaState):
                layer.recurrent.fill_(777.0)
                layer.conv.fill_(777.0)
                layer.recurrent[0] = layer.conv[0] = torch.nan
            else:
                layer.pages.fill_(777.0)
        server.prefill(0, PROMPT)
    before = snapshot(padded.caches)
    want = live.step([GOOD[:3]], [len(PROMPT) + 3], [1]).logits
    got = padded.step([GOOD[:3], [WRONG] * 3, [9] * 3], [len(PROMPT) + 3, 0, 0], [1, 9, -4]).logits
    assert torch.equal(got[:3], want)
    for old, new in zip(before.layers, padded.caches.layers, strict=True):
        if isinstance(new, KdaState):
            assert isinstance(old, KdaState)
            owned = set(padded.slots[0, :3].tolist())
            others = [slot for slot in range(len(new.recurrent)) if slot not in owned]
            assert bits(old.recurrent[others]) == bits(new.recurrent[others])
            others = [s for s in range(len(new.conv)) if s != int(padded.slots[0, 0])]
            assert bits(old.conv[others]) == bits(new.conv[others])
        else:
            assert isinstance(old, KvCache)
            changed = (old.pages != new.pages).any(2).nonzero().tolist()
            table = padded.tables[0].tolist()
            assert sorted(changed) == sorted([table[p // 4], p % 4] for p in (3, 4, 5))


def bits(x: torch.Tensor) -> bytes:
    return x.contiguous().view(torch.uint8).numpy().tobytes()


FP32_ALWAYS = {
    *("attn_res.logit", "attn_res.mix", "ffn_res.logit", "ffn_res.mix"),
    *("kda.q", "kda.k", "kda.log_decay", "kda.beta", "kda.u", "mla.lse", "moe.logits"),
}
FP32 = {
    "stock": FP32_ALWAYS | {"moe.weights"},
    "specialized": FP32_ALWAYS | {"kda.conv", "kda.v", "kda.o"},
}


class Wider(SingleRank):
    """A sum over ranks that needs more bits than its terms."""

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        return x * (1 + 2.0**-12)


@pytest.mark.parametrize("policy", [stock(), specialized()], ids=lambda p: p.name)
def test_intermediates_hold_bf16_values_where_the_rounding_map_says_so(policy: Rounding) -> None:
    recorder, alone = Recorder(), model(policy)
    server = Server(replace(alone, ctx=replace(alone.ctx, comm=Wider())), 1)
    server.prefill(0, PROMPT)
    server.step([GOOD[:8]], [len(PROMPT) + 8], [1], tap=recorder)
    rounded = {
        name: torch.equal(value.bfloat16().to(value.dtype), value)
        for name, value in recorder.values.items()
    }
    wide = {name.split(".", 2)[2] for name in rounded if "layer" in name and not rounded[name]}
    assert wide == FP32[policy.name]
    assert {n for n in rounded if "layer" not in n and not rounded[n]} == {
        "final.logit",
        "final.mix",
    }


def test_a_step_records_every_documented_intermediate_and_no_other() -> None:
    recorder = Recorder()
    server = Server(model(specialized()), 1, draft=0)
    server.step([[3]], [1], [1], tap=recorder)
    seen = {name.split(".", 2)[2] for name in recorder.values if name.startswith("layer.")}
    assert seen == set(LAYER_HOOKS)
    assert {name for name in recorder.values if not name.startswith("layer.")} == set(STEP_HOOKS)
    sources = [len(recorder.values[f"layer.{i}.attn_res.logit"][0]) for i in range(6)]
    assert sources == [odd().num_saved_blocks(i) + 1 for i in range(6)] == [1, 2, 2, 3, 3, 4]
    assert len(recorder.values["final.logit"][0]) == odd().num_blocks + 1 == 4


def test_a_packed_projection_is_one_product_of_the_packed_weights() -> None:
    """Each fused projection kernel has one hook to be compared with."""
    alone, recorder = model(exact(torch.float64)), Recorder()
    Server(alone, 1, draft=2).step([[3, 8, 1]], [3], [1], tap=recorder)
    for index, layer in enumerate(alone.weights.layers):
        of = {
            name: recorder.values[f"layer.{index}.{name}"] for name in ("attn_res.x", "ffn_res.y")
        }
        a, ffn = layer.attention, layer.ffn
        if isinstance(a, KdaWeights):
            kind, rows = "kda", [a.q_proj, a.k_proj, a.v_proj, a.g_proj, a.f_a_proj, a.b_proj]
        else:
            kind, rows = "mla", [a.q_a_proj, a.kv_a_proj, a.g_proj]
        want = of["attn_res.x"] @ torch.cat(rows).double().T
        got = recorder.values[f"layer.{index}.{kind}.projected"]
        assert torch.allclose(got, want, rtol=1e-12, atol=1e-12)
        kind, glu = ("dense", ffn) if isinstance(ffn, DenseWeights) else ("shared", ffn.shared)
        want = of["ffn_res.y"] @ torch.cat([glu.gate_proj, glu.up_proj]).double().T
        got = recorder.values[f"layer.{index}.{kind}.gate_up"]
        assert torch.allclose(got.flatten(1), want, rtol=1e-12, atol=1e-12)


def test_a_step_refuses_requests_that_are_padding_for_one_kind_of_layer_only() -> None:
    server = Server(model(stock()), 1, draft=0)
    with pytest.raises(ValueError, match="different requests"):
        server.model.step(
            torch.tensor([3]),
            1,
            server.caches,
            slots=torch.zeros(1, 1, dtype=torch.long),
            accepted=torch.tensor([1]),
            block_table=server.tables,
            lengths=torch.tensor([1]),
        )


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(ValueError, match="empty prompt"):
        Server(model(stock()), 1).prefill(0, [])


def test_a_reused_slot_remembers_nothing_of_the_request_before() -> None:
    server = Server(model(stock()), 1)
    want = server.prefill(0, PROMPT).logits
    server.step([GOOD[:8]], [len(PROMPT) + 8], [1])
    assert torch.equal(server.prefill(0, PROMPT).logits, want)


def test_caches_of_another_model_are_refused() -> None:
    server = Server(model(stock()), 1, draft=0)
    server.caches = Caches(server.caches.layers[::-1])
    with pytest.raises(ValueError, match="another model"):
        server.step([[1]], [1], [1])


@pytest.mark.parametrize("point", POINTS)
def test_every_rounding_point_lies_on_the_path_to_the_logits(point: str) -> None:
    """A bend at one point alone, which no norm behind it undoes, must show in the logits."""
    plain = exact(torch.float32)
    bent = replace(plain, **{point: lambda x: x + 0.25 * x * x})
    want, got = (Server(model(r), 1, draft=2).step([[3, 8, 1]], [3], [1]) for r in (plain, bent))
    assert (got.logits - want.logits).abs().max() > 1e-3


NEAR = {
    "layer.0.attention": (2.0**-6, 2.0**-6),
    "layer.0.delta": (2.0**-6, 2.0**-6),
    "layer.1.attention": (2.0**-5, 2.0**-5),
    "layer.1.moe.shared": (2.0**-5, 2.0**-5),
    "layer.1.moe.latent": (2.0**-5, 2.0**-3),
}


def test_tiny_under_every_policy_stays_near_float64_for_two_layers() -> None:
    """Relative L2 error of a row. A BF16 rounding is 2^-9 and a block passes about eight of them:
    2^-6 per block, 2^-5 in the second layer; e4m3 is 2^-4 per value, and the experts see two.
    Farther down a pick of experts may flip, and then errors are of the order of 1."""
    weights = random_weights(tiny())
    recorded = {}
    for rounding in (exact(torch.float64), exact(torch.float32), stock(), specialized()):
        recorder = Recorder()
        server = Server(Model(Context(tiny(), rounding), weights), 1)
        server.prefill(0, [1, 2, 3])
        server.step([[4, 5, 6, 7]], [7], [1], tap=recorder)
        recorded[rounding.name] = recorder.values
    want = recorded["exact(float64)"]
    for hook, bounds in NEAR.items():
        for name, bound in zip(("stock", "specialized"), bounds, strict=True):
            assert 2.0**-11 < relative(recorded[name][hook], want[hook]) < bound
    assert want["logits"].shape == (4, 512)
    assert 0 < relative(recorded["exact(float32)"]["logits"], want["logits"]) < 2.0**-18


def relative(got: torch.Tensor, want: torch.Tensor) -> float:
    return float(((got - want).norm(dim=1) / want.norm(dim=1)).max())
