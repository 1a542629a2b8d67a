# SPDX-License-Identifier: Apache-2.0
"""Operators on a GPU: no number comes to the host, and nothing stays behind on another device.

Fake tensors have a device, shapes and no numbers; no GPU is needed. Whatever asks one for a
number raises, and so does an operation between two devices.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from kimi_k3.operators import ends, ffn, kda, kda_prefill, mla, mla_prefill, moe, residual
from kimi_k3.operators.expert_weights import _tables
from kimi_k3.packed import PackedFfn, PackedKda, PackedMla, PackedModel, PackedMoe
from kimi_k3.reference.state import FP8, KvCache
from kimi_k3.rounding import stock
from kimi_k3.step import Kind
from tests.kimi_k3.operators.builders import Case, case, context, packed

ELSEWHERE = "meta"
"""A device that is not the CPU and that every machine has."""
FORM = KvCache(torch.empty(0, dtype=FP8), q_scale=0.5, k_scale=0.25)


def elsewhere(record: Any) -> Any:
    """The same under `FakeTensorMode`, on another device and without numbers."""
    if isinstance(record, torch.Tensor):
        return torch.empty_strided(
            record.shape, record.stride(), dtype=record.dtype, device=ELSEWHERE
        )
    if isinstance(record, tuple):
        return tuple(elsewhere(item) for item in record)
    if not is_dataclass(record):
        return record
    changed = {f.name: elsewhere(getattr(record, f.name)) for f in fields(record)}
    return replace(record, **changed)  # type: ignore[type-var]


def kda_window(w: PackedModel, one: Case) -> torch.Tensor:
    layer = w.layers[1].attention
    assert isinstance(layer, PackedKda)
    projected = kda.project(context(stock()), layer, one.x)
    return kda.window(context(stock()), layer, projected, one.memory.state, one.part)


def kda_prompt(w: PackedModel, one: Case) -> torch.Tensor:
    layer = w.layers[1].attention
    assert isinstance(layer, PackedKda)
    projected = kda.project(context(stock()), layer, one.x)
    return kda_prefill.prefill(context(stock()), layer, projected, one.memory.state, one.part)


def mla_window(w: PackedModel, one: Case) -> torch.Tensor:
    layer = w.layers[3].attention
    assert isinstance(layer, PackedMla)
    projected = mla.project(context(stock()), layer, one.x)
    return mla.window(context(stock()), layer, projected, one.memory.cache, one.part)


def mla_prompt(w: PackedModel, one: Case) -> torch.Tensor:
    layer = w.layers[3].attention
    assert isinstance(layer, PackedMla)
    projected = mla.project(context(stock()), layer, one.x)
    return mla_prefill.prefill(context(stock()), layer, projected, one.memory.cache, one.part)


def mixture(w: PackedModel, one: Case) -> torch.Tensor:
    """All but the choice of experts, whose few doubtful scores the host decides."""
    layer, ctx = w.layers[1].ffn, context(stock())
    assert isinstance(layer, PackedMoe)
    logits, z = moe.logits(ctx, layer, one.x), moe.latent(ctx, layer, one.x)
    rows = moe._gathered(ctx, layer.experts, logits.topk(3, dim=1).indices, z)
    return moe.finish(ctx, layer, rows.sum(1), ffn.gated(ctx, layer.shared, one.x))


def rest(w: PackedModel, one: Case) -> torch.Tensor:
    ctx, layer = context(stock()), w.layers[0].ffn
    assert isinstance(layer, PackedFfn)
    h = residual.mix(ctx, w.final_mix, ffn.gated(ctx, layer, one.x), one.x[:, None])
    ids = one.part.lengths.repeat_interleave(one.part.group.rows, output_size=len(h))
    return ends.final_norm_logits(ctx, w, h + ends.embed(ctx, w, ids))


@pytest.fixture(autouse=True)
def _tables_of_this_test_only() -> Iterator[None]:
    """Tables made of fake tensors would outlive the test, and real ones do not mix with them."""
    _tables.cache_clear()
    yield
    _tables.cache_clear()


@pytest.mark.parametrize("block", [kda_window, kda_prompt, mla_window, mla_prompt, mixture, rest])
def test_a_block_asks_for_no_number(block: Callable[[PackedModel, Case], torch.Tensor]) -> None:
    kind = Kind.PREFILL if "prompt" in block.__name__ else Kind.WINDOW
    one = case([True, False], 3, kind=kind, rounding=stock(), form=FORM)
    weights = packed()
    with FakeTensorMode():
        out = block(elsewhere(weights), elsewhere(one))
    assert out.device.type == ELSEWHERE
    assert len(out) == 6


def test_asking_for_a_number_would_be_noticed() -> None:
    with FakeTensorMode(), pytest.raises(DataDependentOutputException):
        torch.ones(3, device=ELSEWHERE).amax().item()


def test_a_tensor_on_another_device_would_be_noticed() -> None:
    with FakeTensorMode(), pytest.raises(RuntimeError, match="two devices"):
        torch.ones(3, device=ELSEWHERE) + torch.arange(3)
