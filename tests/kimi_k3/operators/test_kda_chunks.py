# SPDX-License-Identifier: Apache-2.0
"""The chunk form against the recurrence token by token, where exponentials leave FP32."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kimi_k3.operators.kda_chunks import delta_rule
from kimi_k3.reference.kda import Inputs, delta_step
from kimi_k3.reference.norm import l2_norm
from tests.kimi_k3.operators.builders import close
from tests.kimi_k3.reference.builders import Draw

LENGTHS = (1, 2, 3, 15, 16, 17, 48, 49, 63, 64, 65, 130, 200)
GATES = ("bound", "none", "mixture", "random", "unbounded")
EPS = 2.0**-24


def inputs(
    tokens: int, gates: str, seed: int = 0, requests: int = 2
) -> tuple[Inputs, torch.Tensor]:
    """Three heads of keys 8 and values 6; FP32 numbers in float64."""
    d = Draw(seed, torch.float32)
    size = (requests, tokens, 3, 8)
    uniform = d.uniform(0, 1, *size)
    g = {
        "bound": torch.full(size, -5.0),
        "none": -1e-6 * uniform,
        "mixture": torch.where(uniform > 0.5, -5.0, -1e-4 * uniform),
        "random": -5.0 * uniform,
        "unbounded": -torch.exp(12 * uniform - 6),  # 0.002 to 400 per token
    }[gates]
    x = Inputs(
        l2_norm(d.normal(*size), 1e-6) * 8**-0.5,
        l2_norm(d.normal(*size), 1e-6),
        d.normal(requests, tokens, 3, 6),
        g,
        d.uniform(0, 1, requests, tokens, 3),
    )
    s = d.normal(requests, 3, 6, 8)
    return cast(x, torch.float64), s.double()


def cast(x: Inputs, dtype: torch.dtype) -> Inputs:
    return Inputs(*(y.to(dtype) for y in (x.q, x.k, x.v, x.g, x.beta)))


def by_token(x: Inputs, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    outs = []
    for t in range(x.q.shape[1]):
        s, _, o = delta_step(s, x, t)
        outs.append(o)
    return torch.stack(outs, 1), s


@pytest.mark.parametrize("gates", GATES)
@pytest.mark.parametrize("tokens", LENGTHS)
def test_chunks_equal_the_recurrence_in_float64(tokens: int, gates: str) -> None:
    x, s = inputs(tokens, gates)
    (o, end), (want_o, want_end) = delta_rule(x, s), by_token(x, s)
    close(o, want_o, 1e-13)
    close(end, want_end, 1e-13)


@pytest.mark.parametrize("gates", GATES)
@pytest.mark.parametrize("tokens", [17, 64, 200])
def test_chunks_in_fp32_are_as_exact_as_the_recurrence_in_fp32(tokens: int, gates: str) -> None:
    """Every factor is a decay of at most 1, so no error grows on its way.

    A result then carries the errors of its own terms: at most 16 factors of a decay within a
    block and 4 across, a dot product over 8 keys, and sums over 64 deltas in each of the chunks,
    n = 16 + 4 + 8 + 64 roundings of numbers no larger than the state. As random errors they add
    up to sqrt(n) of them; 4 standard deviations are granted.
    """
    x, s = inputs(tokens, gates)
    (o, end), (want_o, want_end) = delta_rule(cast(x, torch.float32), s.float()), by_token(x, s)
    bound = 4 * (16 + 4 + 8 + 64) ** 0.5 * EPS
    assert (o - want_o).abs().max() <= bound * torch.maximum(want_o.abs().max(), s.abs().max())
    assert (end - want_end).abs().max() <= bound * torch.maximum(
        want_end.abs().max(), s.abs().max()
    )


def test_no_digits_cancel_when_a_long_decay_is_followed_by_none() -> None:
    """Cumulative logs of -6000 would leave differences of 1e-3 with an error of 5e-4 in FP32."""
    x, s = inputs(64, "none")
    x.g[:, :30] = -200.0
    x.g[:, 30:] = -1e-3
    (o, end), (want_o, want_end) = delta_rule(cast(x, torch.float32), s.float()), by_token(x, s)
    assert (o - want_o).abs().max() <= 1e-5 * want_o.abs().max()
    assert (end - want_end).abs().max() <= 1e-5 * want_end.abs().max()


@settings(max_examples=25, deadline=None)
@given(
    tokens=st.integers(2, 150),
    cut=st.floats(0, 1),
    gates=st.sampled_from(GATES),
    seed=st.integers(0, 99),
)
def test_a_sequence_may_be_cut_anywhere(tokens: int, cut: float, gates: str, seed: int) -> None:
    x, s = inputs(tokens, gates, seed, requests=1)
    at = 1 + int(cut * (tokens - 2))
    first = Inputs(*(y[:, :at] for y in (x.q, x.k, x.v, x.g, x.beta)))
    second = Inputs(*(y[:, at:] for y in (x.q, x.k, x.v, x.g, x.beta)))
    head, middle = delta_rule(first, s)
    tail, end = delta_rule(second, middle)
    o, want = delta_rule(x, s)
    close(torch.cat([head, tail], 1), o, 1e-13)
    close(end, want, 1e-13)


def test_a_request_full_of_nan_leaves_the_others_alone() -> None:
    x, s = inputs(70, "random")
    poisoned = replace(x, v=x.v.clone())
    poisoned.v[1] = torch.nan
    o, end = delta_rule(poisoned, s)
    want_o, want_end = delta_rule(x, s)
    assert torch.equal(o[0], want_o[0])
    assert torch.equal(end[0], want_end[0])
    assert o[1].isnan().any()


def test_equal_keys_without_decay_keep_the_newest_value() -> None:
    """The hardest triangle to solve: all of A is 1. With beta = 1 the state holds the last v."""
    x, s = inputs(64, "none")
    x = replace(x, g=torch.zeros_like(x.g), beta=torch.ones_like(x.beta))
    x.k[:] = x.k[:, :1]
    x.k.div_(x.k.norm(dim=-1, keepdim=True))
    _, end = delta_rule(x, s)
    kept = (end @ x.k[:, -1, :, :, None])[..., 0]
    close(kept, x.v[:, -1], 1e-12)
