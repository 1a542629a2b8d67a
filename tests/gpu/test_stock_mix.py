# SPDX-License-Identifier: Apache-2.0
"""The fused attention residual against the equations of spec 2.2 in float64."""

from dataclasses import dataclass

import pytest
import torch

from kimi_k3.config import full, mini, tiny
from kimi_k3.stock.cuda.mix import mix
from tests.gpu.oracle import (
    BF16_UNIT,
    DEVICE,
    FP32_UNIT,
    MANY,
    ON_GPU,
    ROWS,
    assert_same,
    assert_within,
    attempts,
    bf16,
    poisoned,
    wide,
)

EPS = 1e-5
WIDTHS = (full().hidden_size, mini().hidden_size, tiny().hidden_size) if ON_GPU else (192, 128)
ADDENDS = (0, 1, 2)


@dataclass(frozen=True)
class Exact:
    """The mix in float64, and how far FP32 arithmetic may be from it before x is rounded."""

    x: torch.Tensor
    bound: torch.Tensor


def exact_mix(
    sources: torch.Tensor, score: torch.Tensor, norm: torch.Tensor | None, hidden: int
) -> Exact:
    """Of sources [M, n, H]."""
    rms = torch.rsqrt((sources**2).mean(-1) + EPS)  # [M, n]
    logit = (sources * score).sum(-1) * rms  # [M, n]
    alpha = torch.softmax(logit, 1)[:, :, None]  # [M, n, 1]
    m = (alpha * sources).sum(1)  # [M, H]
    out_rms = torch.rsqrt((m**2).mean(-1, keepdim=True) + EPS)  # [M, 1]
    # A thread adds at most H / 32 terms, then at most 8 + 8 partial sums; the exponential, its
    # argument and the divisions are right to a few units.
    terms = max(hidden / 32, 32) + 16
    slack = terms * FP32_UNIT * ((sources * score).abs().sum(-1) * rms).amax(1) * 2  # [M]
    slack = slack + 16 * FP32_UNIT * (1 + logit.amax(1) - logit.amin(1))
    mixed_error = (2 * slack[:, None] + 32 * FP32_UNIT) * (alpha * sources.abs()).sum(1)  # [M, H]
    if norm is None:
        return Exact(m, mixed_error + BF16_UNIT * m.abs())
    # d(rms) / rms <= |dm| / |m| in the Euclidean norm, and the mean of squares adds H terms.
    length = (m**2).sum(-1, keepdim=True).sqrt().clamp(min=1e-30)
    rms_error = (mixed_error**2).sum(-1, keepdim=True).sqrt() / length + terms * FP32_UNIT
    x = m * out_rms * norm
    bound = (mixed_error * out_rms * norm).abs() + (rms_error + BF16_UNIT) * x.abs()
    return Exact(x, bound)


def added(prefix: torch.Tensor, pending: list[torch.Tensor]) -> torch.Tensor:
    """The updated prefix, rounded as the stock path rounds."""
    if not pending:
        return prefix
    delta = pending[0]
    if len(pending) == 2:
        delta = bf16(pending[0].float() + pending[1].float())
    return bf16(prefix.float() + delta.float())


def check(rows: int, hidden: int, saved: int, addends: int, *, normed: bool, write: bool) -> None:
    for poison, inputs in attempts(rows * 31 + saved):
        prefix = inputs.normal(rows, hidden)
        pending = [inputs.normal(rows, hidden, scale=0.3) for _ in range(addends)]
        blocks = poisoned(poison, rows, saved + 2, hidden)  # invalid blocks must not be read
        blocks[:, :saved] = inputs.normal(rows, saved, hidden, scale=2.0)
        score = inputs.normal(hidden, scale=hidden**-0.5, dtype=torch.float32)
        norm = inputs.normal(hidden) if normed else None
        x, prefix_out = poisoned(poison, rows, hidden), poisoned(poison, rows, hidden)
        before = blocks.clone()
        mix(
            x,
            prefix,
            pending,
            blocks,
            saved,
            score=score,
            norm=norm,
            eps=EPS,
            prefix_out=prefix_out,
            write=write,
        )
        p = added(prefix, pending)
        assert_same(prefix_out, p)
        if write:
            before[:, saved] = p
        assert_same(blocks, before)
        sources = torch.cat([wide(blocks[:, :saved]), wide(p)[:, None]], 1)
        exact = exact_mix(sources, wide(score), None if norm is None else wide(norm), hidden)
        assert_within(x, exact.x, exact.bound)


@pytest.mark.parametrize("hidden", WIDTHS)
@pytest.mark.parametrize("saved", range(9))
def test_any_number_of_saved_blocks_is_mixed(hidden: int, saved: int) -> None:
    check(3, hidden, saved, 1, normed=True, write=False)


@pytest.mark.parametrize("hidden", WIDTHS)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("addends", ADDENDS)
def test_any_number_of_rows_and_addends_is_added(hidden: int, rows: int, addends: int) -> None:
    check(rows, hidden, 2, addends, normed=True, write=False)


@pytest.mark.parametrize("hidden", WIDTHS)
@pytest.mark.parametrize("saved", [0, 1, 7])
def test_a_block_write_saves_the_updated_prefix_and_leaves_the_mix_alone(
    hidden: int, saved: int
) -> None:
    check(2, hidden, saved, 2, normed=True, write=True)


@pytest.mark.parametrize("hidden", WIDTHS)
def test_the_last_mix_has_no_output_norm(hidden: int) -> None:
    check(3, hidden, 8, 2, normed=False, write=False)


def test_a_prefill_of_many_rows_is_mixed() -> None:
    check(MANY, WIDTHS[0], 3, 2, normed=True, write=True)


def test_a_prefix_is_updated_in_place() -> None:
    for poison, inputs in attempts(7):
        prefix, a = inputs.normal(4, 192), inputs.normal(4, 192)
        want = added(prefix.clone(), [a])
        blocks, score = inputs.normal(4, 3, 192), inputs.normal(192, dtype=torch.float32)
        x = poisoned(poison, 4, 192)
        mix(x, prefix, [a], blocks, 3, score=score, norm=None, eps=EPS, prefix_out=prefix)
        assert_same(prefix, want)


def test_a_prefix_may_be_a_saved_block() -> None:
    for poison, inputs in attempts(8):
        blocks, a = inputs.normal(4, 3, 192), inputs.normal(4, 192)
        score = inputs.normal(192, dtype=torch.float32)
        got, want = poisoned(poison, 4, 192), poisoned(poison, 4, 192)
        mix(got, blocks[:, 1], [a], blocks, 1, score=score, norm=None, eps=EPS)
        mix(want, blocks[:, 1].clone(), [a], blocks, 1, score=score, norm=None, eps=EPS)
        assert_same(got, want)


def test_huge_scores_do_not_overflow() -> None:
    for poison, inputs in attempts(9):
        blocks, prefix = inputs.normal(2, 2, 192), inputs.normal(2, 192)
        score = inputs.normal(192, scale=100.0, dtype=torch.float32)
        x = poisoned(poison, 2, 192)
        mix(x, prefix, [], blocks, 2, score=score, norm=None, eps=EPS)
        sources = torch.cat([wide(blocks), wide(prefix)[:, None]], 1)
        exact = exact_mix(sources, wide(score), None, 192)
        assert_within(x, exact.x, exact.bound)


@pytest.mark.parametrize(
    ("addends", "saved", "write"), [(3, 0, False), (0, 3, False), (0, 2, True), (0, -1, False)]
)
def test_what_no_step_asks_is_refused(addends: int, saved: int, write: bool) -> None:
    x = torch.zeros(1, 32, dtype=torch.bfloat16, device=DEVICE)
    with pytest.raises(ValueError, match="addends and"):
        mix(x, x, [x] * addends, x[:, None].repeat(1, 2, 1), saved, score=x[0], norm=None, eps=EPS,
            write=write)  # fmt: skip


def test_rows_of_other_widths_are_refused() -> None:
    x = torch.zeros(1, 32, dtype=torch.bfloat16, device=DEVICE)
    with pytest.raises(ValueError, match="32 values"):
        mix(x, x[:, :16], [], x[:, None], 0, score=x[0], norm=None, eps=EPS)
