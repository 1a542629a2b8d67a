# SPDX-License-Identifier: Apache-2.0
"""The short convolution against the reference in float64, and its windows bit for bit."""

from dataclasses import dataclass, replace

import pytest
import torch

from kimi_k3.reference.kda import conv_silu
from kimi_k3.stock.cuda.conv import TOKENS, Convolution, conv_prefill, conv_window
from kimi_k3.stock.cuda.decay import Decay
from tests.gpu.oracle import (
    BF16_UNIT,
    DEVICE,
    FP32_UNIT,
    LEAST_NORMAL,
    MANY,
    ON_GPU,
    ROWS,
    Inputs,
    assert_same,
    assert_within,
    attempts,
    poisoned,
    wide,
)

WIDTH = 4
SMALL = ((16, 1), (130, 3))  # channels of q, heads: mini at TP8, and an odd one
SIZES = ((1536, 12), (768, 6), (128, 8), *SMALL) if ON_GPU else SMALL
WINDOWS = tuple(range(1, 9)) if ON_GPU else (1, 4, 8)


@dataclass(frozen=True)
class Case:
    """Sizes of a step.

    Attributes:
        requests: R.
        rows: new tokens of each.
        w: channels of q.
        heads: logits of beta per row.
        draft: draft tokens that the state has room for.
        padding: requests that are padding: by slot, or by length.
    """

    requests: int
    rows: int
    w: int
    heads: int
    draft: int = 7
    padding: tuple[int, ...] = ()


def build(case: Case, inputs: Inputs, poison: float) -> Convolution:
    """Operands; padding rows and every window of other slots hold `poison`, or what they held."""
    m, w, kept = case.requests * case.rows, case.w, WIDTH - 1 + case.draft
    columns = case.draft + 1
    table = 1 + torch.randperm(case.requests * columns, generator=inputs.generator)
    table = table.reshape(case.requests, columns).to(torch.int32).to(DEVICE)
    lengths = inputs.integers(case.rows + 1, 4096, case.requests)
    projected = inputs.normal(m, 4 * w + 2 * case.heads + 24)
    for i, request in enumerate(case.padding):
        if i % 2:
            table[request] = -1 if i % 4 == 1 else 0
        else:
            lengths[request] = 0
        projected[request * case.rows : (request + 1) * case.rows] = poison
    return Convolution(
        out=poisoned(poison, 3, m, w),
        beta=poisoned(poison, m, case.heads),
        qkv=projected[:, : 3 * w],
        beta_logits=projected[:, 4 * w + 8 : 4 * w + 8 + case.heads],
        weight=inputs.normal(3 * w, WIDTH, dtype=torch.float32),
        state=inputs.normal(1 + case.requests * columns, 3 * w, kept),
        slots=table[:, 0],
        accepted=inputs.integers(1, case.draft + 2, case.requests),
        lengths=lengths,
    )


def decay_of(t: Convolution) -> Decay:
    """Operands of a decay for the rows of `t`, dead rows included; f is a column block."""
    _, m, w = t.out.shape
    inputs = Inputs(torch.Generator().manual_seed(m + w))
    f = inputs.normal(m, 8 + 24)[:, 8:]
    f[(t.lengths == 0).repeat_interleave(t.rows)] = float("nan")
    return Decay(poisoned(float("nan"), m, w), f, inputs.normal(w, 24, scale=0.2))


def taps_of(t: Convolution, state: torch.Tensor, *, prefill: bool) -> torch.Tensor:
    """[R, 3 W, width - 1] inputs before each request's first new token; zeros for padding."""
    taps = torch.zeros(len(t.lengths), state.shape[1], WIDTH - 1, dtype=torch.float64)
    for b, slot in enumerate(t.slots.tolist()):
        starts_empty = prefill and int(t.lengths[b]) == t.rows
        if slot > 0 and t.lengths[b] > 0 and not starts_empty:
            start = int(t.accepted[b]) - 1
            taps[b] = wide(state[slot, :, start : start + WIDTH - 1])
    return taps


def check(t: Convolution, *, prefill: bool) -> None:
    """Runs the operation and compares outputs, beta and the whole state."""
    before = t.state.clone()
    taps = taps_of(t, before, prefill=prefill)
    dead = (t.slots <= 0) | (t.lengths == 0)
    dead_rows = dead.repeat_interleave(t.rows).cpu()
    fresh = wide(t.qkv)
    fresh[dead_rows] = 0
    fresh = fresh.unflatten(0, (-1, t.rows))  # [R, q, 3 W]
    decay = decay_of(t)
    if prefill:
        conv_prefill(t)
    else:
        conv_window(t, decay)
        raw = wide(decay.f) @ wide(decay.weight).T
        size = wide(decay.f).abs() @ wide(decay.weight).abs().T
        raw[dead_rows], size[dead_rows] = 0, 0
        # A tree over D products in FP32, and one rounding.
        bound = BF16_UNIT * raw.abs() + decay.f.shape[1] * FP32_UNIT * size + LEAST_NORMAL
        assert_within(decay.raw, raw, bound)
        assert (decay.raw[dead_rows] == 0).all()

    got = torch.cat(list(t.out), 1)  # [M, 3 W]
    exact = conv_silu(taps, fresh, wide(t.weight)).flatten(0, 1)
    size = conv_silu_size(taps, fresh, wide(t.weight))
    # Four products and their sum in FP32; SiLU is at most 1.1 steep, its exponential off by its
    # argument's rounding.
    bound = BF16_UNIT * exact.abs() + (10 + 8 * size) * FP32_UNIT * size + LEAST_NORMAL
    assert_within(got, exact, bound)
    assert (got[dead_rows] == 0).all()
    betas = t.beta_logits.clone()
    betas[dead_rows] = 0
    assert_same(t.beta, betas)
    assert_same(t.state, advanced(t, before, taps, fresh, prefill=prefill))


def conv_silu_size(taps: torch.Tensor, fresh: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """Sum of the absolute products of each output [M, 3 W]."""
    line = torch.cat([taps, fresh.transpose(1, 2)], 2).abs()  # [R, 3 W, width - 1 + q]
    terms = [c[:, j, None].abs() * line[:, :, j : j + fresh.shape[1]] for j in range(WIDTH)]
    return torch.stack(terms).sum(0).transpose(1, 2).flatten(0, 1)


def advanced(
    t: Convolution, before: torch.Tensor, taps: torch.Tensor, fresh: torch.Tensor, *, prefill: bool
) -> torch.Tensor:
    """The state after the step; see `KdaState.write_taps` for windows."""
    state = before.cpu().clone()
    line = torch.cat([taps, fresh.transpose(1, 2)], 2)  # [R, 3 W, width - 1 + q]
    line = line[:, :, 1 - WIDTH :] if prefill else line[:, :, 1:]
    for b, slot in enumerate(t.slots.tolist()):
        if slot > 0 and t.lengths[b] > 0:
            state[slot, :, : line.shape[2]] = line[b].to(state.dtype)
    return state


@pytest.mark.parametrize(("w", "heads"), SIZES)
@pytest.mark.parametrize("requests", ROWS)
def test_one_token_of_each_request_is_convolved(w: int, heads: int, requests: int) -> None:
    for poison, inputs in attempts(requests + w):
        check(build(Case(requests, 1, w, heads, draft=0), inputs, poison), prefill=False)


@pytest.mark.parametrize(("w", "heads"), SIZES)
@pytest.mark.parametrize("rows", WINDOWS)
def test_windows_start_behind_what_was_accepted(w: int, heads: int, rows: int) -> None:
    for poison, inputs in attempts(rows + w):
        check(build(Case(3, rows, w, heads), inputs, poison), prefill=False)


@pytest.mark.parametrize(("w", "heads"), SIZES)
@pytest.mark.parametrize("rows", [1, 4])
def test_padding_gives_zeros_and_keeps_its_windows(w: int, heads: int, rows: int) -> None:
    for poison, inputs in attempts(rows):
        case = Case(8, rows, w, heads, padding=(0, 2, 3, 7))
        check(build(case, inputs, poison), prefill=False)


@pytest.mark.parametrize(("w", "heads"), SIZES)
@pytest.mark.parametrize("rows", [1, 2, 3, TOKENS + 1, MANY])
def test_a_prefill_continues_and_keeps_its_newest_inputs(w: int, heads: int, rows: int) -> None:
    for poison, inputs in attempts(rows):
        check(build(Case(3, rows, w, heads, padding=(1,)), inputs, poison), prefill=True)


@pytest.mark.parametrize("rows", [1, 2, TOKENS + 2])
def test_a_prefill_of_a_whole_prompt_starts_from_nothing(rows: int) -> None:
    for poison, inputs in attempts(rows):
        t = build(Case(2, rows, 16, 1), inputs, poison)
        t.lengths.fill_(rows)
        t.state[t.slots.long()] = poison
        check(t, prefill=True)


def test_a_prefill_in_chunks_equals_one_of_all() -> None:
    for poison, inputs in attempts(6):
        whole = build(Case(1, 50, 16, 1), inputs, poison)
        whole.lengths.fill_(50)
        start = whole.state.clone()
        conv_prefill(whole)
        state, outs = start.clone(), []
        for first, last in ((0, 2), (2, 35), (35, 50)):
            part = replace(
                whole,
                out=poisoned(poison, 3, last - first, 16),
                beta=poisoned(poison, last - first, 1),
                qkv=whole.qkv[first:last],
                beta_logits=whole.beta_logits[first:last],
                state=state,
                accepted=torch.ones_like(whole.accepted),
                lengths=torch.full_like(whole.lengths, last),
            )
            conv_prefill(part)
            outs.append(part.out)
        assert_same(torch.cat(outs, 1), whole.out)
        assert_same(state, whole.state)


def test_a_window_longer_than_the_state_keeps_is_refused() -> None:
    for poison, inputs in attempts(1):
        t = build(Case(1, 4, 16, 1, draft=2), inputs, poison)
        with pytest.raises(ValueError, match="4 rows in a state of 5 inputs"):
            conv_window(t, decay_of(t))


def test_operands_that_do_not_fit_are_refused() -> None:
    for poison, inputs in attempts(2):
        t = build(Case(2, 1, 16, 1), inputs, poison)
        with pytest.raises(ValueError, match="do not fit"):
            replace(t, qkv=t.qkv[:, 1:])
        with pytest.raises(ValueError, match="do not fit"):
            replace(t, accepted=t.accepted[:1])
