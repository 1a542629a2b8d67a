# SPDX-License-Identifier: Apache-2.0
"""A step over residual mixes that are launched: forms, operands, strides, and where outputs go.

A stand-in takes the kernel's place. It computes with the reference from nothing but the operands
that it is given, so that a wrong one shows in the bits of a whole model.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pytest
import torch
from hypothesis import given, settings

from fasttrack.errors import InputError
from kimi_k3.config import full, tiny
from kimi_k3.decode.executor import Executor
from kimi_k3.decode.kernels.attn_res.operators import (
    NAME,
    form_of,
    require_model,
    with_residual_mixes,
)
from kimi_k3.decode.kernels.attn_res.shape import operands
from kimi_k3.decode.kernels.attn_res.table import FORMS
from kimi_k3.decode.kernels.layout import misfit
from kimi_k3.decode.kernels.shapes import Operand, Role
from kimi_k3.operators import residual
from kimi_k3.packed import PackedMix
from kimi_k3.ranks import SingleRank
from kimi_k3.reference.context import Context
from kimi_k3.rounding import exact, stock
from kimi_k3.weights import ModelWeights
from tests.kimi_k3.decode.server import Choice, choices
from tests.kimi_k3.decode.test_executor import SOME, Seen, assert_same, interleaved

CONTEXT = Context(tiny(), stock())
Values = Mapping[str, torch.Tensor | int]


def of(form: str) -> tuple[Operand, ...]:
    """The operands of a form, for the tiny model."""
    c = tiny()
    sizes = {"hidden": c.hidden_size, "room": c.num_blocks, "most": c.num_blocks}
    return operands(sizes | dict(FORMS[form]))


@dataclass
class StandIn:
    """Computes what the kernel does."""

    ctx: Context = CONTEXT
    forms: Counter[str] = field(default_factory=Counter)

    def __call__(self, form: str, values: Values, rows: int) -> None:
        self.forms[form] += 1
        given = {one.name: fitting(one, values[one.name]) for one in of(form)}
        read = {n: t.float() for n, t in given.items() if isinstance(t, torch.Tensor)}
        p = read["prefix"]
        if "delta" in read:
            p = self.ctx.rounding.prefix_add(p + read["delta"])
        saved = given.get("saved", 0)
        blocks = spread(read["blocks"])[:, :saved] if "blocks" in read else None
        norm = given.get("norm")
        score = given.get("score")
        w = PackedMix(torch.zeros(1) if score is None else score, norm)  # type: ignore[arg-type]
        mixed = residual.mix(self.ctx, w, p, blocks)
        outputs = {"out": mixed, "prefix_out": p, "block_out": p}
        for name in given.keys() & outputs.keys():
            target = values[name]
            assert isinstance(target, torch.Tensor)
            assert len(target) == rows
            target.copy_(outputs[name])


def spread(blocks: torch.Tensor) -> torch.Tensor:
    """Blocks as far apart as the reference has them: a product adds in another order if not."""
    rows, saved, hidden = blocks.shape
    room = torch.empty(rows, tiny().num_blocks, hidden)[:, :saved]
    return room.copy_(blocks)


def fitting(operand: Operand, value: torch.Tensor | int) -> torch.Tensor | int:
    """`value`, which an operand may have."""
    if operand.role is Role.SCALAR:
        assert isinstance(value, int)
        assert operand.low <= value <= operand.high
        return value
    assert isinstance(value, torch.Tensor)
    assert misfit(operand, value) == ""
    return value


def served(weights: ModelWeights, chosen: list[Choice], launch: StandIn, tp: int = 1) -> list[Seen]:
    r = stock()

    def change(executor: Executor) -> Executor:
        ctx = Context(tiny(), r, executor.comm, SingleRank())
        return with_residual_mixes(executor, ctx, launch)

    return interleaved(weights, chosen, tp, 1, r, r, change=change)


def narrowed(seen: list[Seen]) -> list[Seen]:
    """The same with what drafters read in BF16, which loses nothing."""

    def aux(one: Seen) -> Seen:
        outputs = []
        for output in one.outputs:
            streams = tuple(x.to(torch.bfloat16) for x in output.aux)
            assert all(
                torch.equal(x, y.to(x.dtype)) for x, y in zip(output.aux, streams, strict=True)
            )
            outputs.append(replace(output, aux=streams))
        return replace(one, outputs=outputs)

    return [aux(one) for one in seen]


@settings(max_examples=5, deadline=None)
@given(chosen=choices())
def test_launched_mixes_give_the_bits_of_the_reference(
    chosen: list[Choice], tiny_weights: ModelWeights
) -> None:
    r = stock()
    got = served(tiny_weights, chosen, StandIn())
    assert_same(narrowed(got), narrowed(interleaved(tiny_weights, chosen, 1, 1, r, r)))


def test_so_they_do_on_two_ranks(tiny_weights: ModelWeights) -> None:
    r = stock()
    got = served(tiny_weights, SOME, StandIn(), tp=2)
    assert_same(narrowed(got), narrowed(interleaved(tiny_weights, SOME, 2, 1, r, r)))


def test_a_step_meets_every_form_that_no_mailbox_feeds(tiny_weights: ModelWeights) -> None:
    launch = StandIn()
    (seen,) = served(tiny_weights, SOME, launch)
    assert isinstance(seen.backend, Executor)
    planned, c = seen.backend.steps()["planned"], tiny()
    writes = sum(c.writes_block(layer) for layer in range(c.num_layers))
    each = {
        "first": 1,
        "block": writes - 1,
        "add": 2 * (c.num_layers - writes),
        "plain": writes,
        "last": 1,
    }
    assert launch.forms == {form: count * planned for form, count in each.items()}
    assert launch.forms.keys() == {form for form in FORMS if not form.endswith("mailbox")}
    assert {n for n, who in seen.backend.served().items() if who == NAME} == {
        "mix",
        "attention_out",
    }


Fault = Callable[[StandIn, str, Values, int], None]


def wrong_block(launch: StandIn, form: str, values: Values, rows: int) -> None:
    launch(form, {**values, "saved": max(1, int(values["saved"]) - 1)}, rows)


def forgotten_prefix(launch: StandIn, form: str, values: Values, rows: int) -> None:
    launch(form, {**values, "prefix_out": torch.empty_like(values["out"])}, rows)


def forgotten_block(launch: StandIn, form: str, values: Values, rows: int) -> None:
    elsewhere = torch.empty(rows, tiny().num_blocks, tiny().hidden_size, dtype=torch.bfloat16)
    launch(form, {**values, "block_out": elsewhere[:, 0]}, rows)


def swapped(launch: StandIn, form: str, values: Values, rows: int) -> None:
    values = dict(values)
    if values["norm"] is not None and "delta" in values:
        values["prefix"] = values["delta"]
    launch(form, values, rows)


@pytest.mark.parametrize("fault", [wrong_block, forgotten_prefix, forgotten_block, swapped])
def test_a_wrong_operand_shows_in_the_logits(fault: Fault, tiny_weights: ModelWeights) -> None:
    launch = StandIn()

    class Faulty(StandIn):
        def __call__(self, form: str, values: Values, rows: int) -> None:
            fault(launch, form, values, rows)

    (got,) = served(tiny_weights, SOME[:1], Faulty())
    (want,) = served(tiny_weights, SOME[:1], StandIn())
    assert launch.forms
    assert not torch.equal(got.outputs[-1].logits, want.outputs[-1].logits)


def test_a_stream_that_is_not_rounded_to_bf16_is_refused(tiny_weights: ModelWeights) -> None:
    r = exact(torch.float64)

    def change(executor: Executor) -> Executor:
        return with_residual_mixes(executor, Context(tiny(), r), StandIn())

    with pytest.raises(Exception, match=r"rounding exact\(float64\): saw `embedding` that is not"):
        interleaved(tiny_weights, SOME[:1], 1, 1, r, r, change=change)


def test_a_mix_that_no_step_has_is_refused() -> None:
    w, x = PackedMix(torch.zeros(1), None), torch.zeros(1)
    with pytest.raises(ValueError, match=r"has just saved blocks$"):
        form_of(w, None, 1, None)
    with pytest.raises(ValueError, match=r"has just delta, a block write$"):
        form_of(w, x, 0, x)


def test_another_model_than_the_code_was_compiled_for_is_refused() -> None:
    c = full()
    sizes = {"hidden": c.hidden_size, "room": c.num_blocks, "eps": c.rms_norm_eps}
    require_model(c, sizes)
    with pytest.raises(InputError) as refused:
        require_model(tiny(), sizes)
    assert str(refused.value).splitlines() == [
        "attn-res hidden: saw 7168; want 128, as the model has",
        "attn-res room: saw 8; want 3, as the model has",
    ]
