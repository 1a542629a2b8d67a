# SPDX-License-Identifier: Apache-2.0
"""KDA: loops, matrix and deferred forms, gates at their ends, slots, and 8,192 steps."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor

from kimi_k3.config import K3Config
from kimi_k3.reference.context import Context
from kimi_k3.reference.hooks import Recorder
from kimi_k3.reference.kda import Inputs, conv_silu, delta_step, gated_norm, kda, log_decay
from kimi_k3.reference.kda_forms import commit_deltas, matrix_step
from kimi_k3.reference.norm import l2_norm
from kimi_k3.reference.state import KdaState, SlotWindow
from kimi_k3.rounding import bf16, exact, specialized
from kimi_k3.weights import KdaWeights
from tests.kimi_k3.reference import second
from tests.kimi_k3.reference.builders import Draw, kda_weights, odd, widened

F64 = exact(torch.float64)
HEADS, DIM = 3, 8


def recurrence(steps: int, seed: int = 0) -> Inputs:
    d = Draw(seed, torch.float64)
    shape = (1, steps, HEADS, DIM)
    return Inputs(
        q=l2_norm(d.normal(*shape), 1e-6) * DIM**-0.5,
        k=l2_norm(d.normal(*shape), 1e-6),
        v=d.normal(*shape),
        g=-5 * torch.sigmoid(d.normal(*shape, scale=2.0)),
        beta=torch.sigmoid(d.normal(*shape[:3])),
    )


def run(s: Tensor, x: Inputs) -> tuple[Tensor, Tensor, Tensor]:
    """States [T, h, value, key], deltas and outputs [T, h, value] of the one request."""
    states, us, os = [], [], []
    for t in range(x.q.shape[1]):
        s, u, o = delta_step(s, x, t)
        states.append(s[0])
        us.append(u[0])
        os.append(o[0])
    return torch.stack(states), torch.stack(us), torch.stack(os)


def start() -> Tensor:
    return Draw(9, torch.float64).normal(1, HEADS, DIM, DIM)


def test_a_step_equals_the_recurrence_written_with_scalars() -> None:
    x, s = recurrence(4), start()
    got, _, outs = run(s, x)
    for h in range(HEADS):
        cell = s[0, h].tolist()
        for t in range(4):
            q, k, v = (y[0, t, h].tolist() for y in (x.q, x.k, x.v))
            decay = x.g[0, t, h].exp().tolist()
            beta = x.beta[0, t, h].item()
            for i in range(DIM):
                row = [cell[i][j] * decay[j] for j in range(DIM)]
                u = beta * (v[i] - sum(row[j] * k[j] for j in range(DIM)))
                cell[i] = [row[j] + u * k[j] for j in range(DIM)]
                o = sum(cell[i][j] * q[j] for j in range(DIM))
                assert outs[t, h, i].item() == pytest.approx(o, rel=1e-12, abs=1e-14)
        assert got[3, h].numpy() == pytest.approx(np.array(cell), rel=1e-12, abs=1e-14)


def test_the_matrix_form_equals_the_recurrence() -> None:
    x, s = recurrence(6), start()
    want, _, _ = run(s, x)
    for h in range(HEADS):
        m = s[0, h]
        for t in range(6):
            m = matrix_step(m, x.k[0, t, h], x.v[0, t, h], x.g[0, t, h], x.beta[0, t, h])
            assert torch.allclose(m, want[t, h], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("accepted", [0, 1, 2, 5, 8])
def test_a_deferred_commit_equals_running_the_accepted_tokens(accepted: int) -> None:
    x, s = recurrence(8), start()
    states, us, _ = run(s, x)
    for h in range(HEADS):
        recorded = (y[0, :accepted, h] for y in (x.k, x.g))
        got = commit_deltas(s[0, h], us[:accepted, h], *recorded)
        want = states[accepted - 1, h] if accepted else s[0, h]
        assert torch.allclose(got, want, rtol=1e-11, atol=1e-13)


def test_a_deferred_commit_survives_decays_that_underflow() -> None:
    """After 300 tokens at e^-5 the total decay is 0; quotients of it would be NaN."""
    x = recurrence(300)
    x = replace(x, g=torch.full_like(x.g, -5.0))
    states, us, _ = run(start(), x)
    got = commit_deltas(start()[0, 0], us[:, 0], x.k[0, :, 0], x.g[0, :, 0])
    assert torch.allclose(got, states[-1, 0], rtol=1e-10, atol=1e-13)


def test_the_convolution_sees_the_whole_history_through_its_window() -> None:
    d = Draw(3, torch.float64)
    history, c = d.normal(1, 20, 5), d.normal(5, 4)
    padded = torch.cat([torch.zeros(1, 3, 5, dtype=torch.float64), history], 1)
    for first, q in ((0, 1), (0, 8), (3, 5), (12, 8)):
        taps = padded[:, first : first + 3].transpose(1, 2)
        got = conv_silu(taps, history[:, first : first + q], c)
        for channel in range(5):
            full = np.convolve(history[0, :, channel], c[channel].flip(0))[first : first + q]
            want = full / (1 + np.exp(-full))
            np.testing.assert_allclose(got[0, :, channel], want, rtol=1e-12, atol=1e-14)


def gate(config: K3Config, raw: float, a_log: float) -> float:
    w = replace(
        kda_weights(config, Draw(0)),
        a_log=torch.full((config.kda_num_heads,), a_log),
        dt_bias=torch.zeros(config.kda_width),
    )
    g = log_decay(config, w, torch.full((1, config.kda_width), raw, dtype=torch.float64))
    assert g.shape == (1, config.kda_num_heads, config.kda_head_dim)
    assert (g == g[0, 0, 0]).all()
    return float(g[0, 0, 0])


def test_the_bounded_gate_saturates_at_its_bound_and_at_no_decay() -> None:
    assert gate(odd(), 1e4, 2.0) == -5.0
    assert gate(odd(), -1e4, 2.0) == 0.0
    assert gate(odd(), 0.0, 1.0) == -2.5
    assert gate(odd(), 0.7, 1.0) == pytest.approx(-5 / (1 + np.exp(-0.7 * np.e)), rel=1e-14)


def test_without_a_bound_the_gate_is_softplus_with_a_linear_branch_above_20() -> None:
    config = replace(odd(), gate_lower_bound=None)
    assert gate(config, 0.7, 1.0) == pytest.approx(-np.e * np.log1p(np.exp(0.7)), rel=1e-14)
    assert gate(config, 21.0, 0.0) == -21.0
    assert gate(config, 19.0, 0.0) == pytest.approx(-19.0 - np.log1p(np.exp(-19.0)), rel=1e-15)
    assert gate(config, 19.0, 0.0) != -19.0
    assert gate(config, 5000.0, 2.0) == pytest.approx(-5000 * np.exp(2.0), rel=1e-12)
    assert gate(config, -800.0, 0.0) == 0.0


def test_the_output_is_normalised_before_it_is_gated() -> None:
    d = Draw(4, torch.float64)
    o, raw, w = d.normal(2, HEADS, DIM), d.normal(2, HEADS * DIM), d.norm(DIM)
    got = gated_norm(o, raw, w, 1e-5).view(2, HEADS, DIM)
    gates = 1 / (1 + torch.exp(-raw.view(2, HEADS, DIM)))
    for m in range(2):
        for h in range(HEADS):
            size = (sum(y**2 for y in o[m, h].tolist()) / DIM + 1e-5) ** 0.5
            want = o[m, h] / size * w * gates[m, h]
            assert torch.allclose(got[m, h], want, rtol=1e-12)


def block(seed: int = 1) -> tuple[KdaWeights, Tensor]:
    d = Draw(seed)
    return widened(kda_weights(odd(), d), torch.float64), d.normal(24, 40, dtype=torch.float64)


def state(slots: int, draft: int = 7) -> KdaState:
    c = odd()
    return KdaState(
        torch.zeros(slots, c.kda_num_heads, c.kda_head_dim, c.kda_head_dim, dtype=torch.float64),
        torch.zeros(slots, c.conv_channels, c.conv_window(draft), dtype=torch.float64),
    )


@pytest.mark.parametrize("bound", [-5.0, -0.1, None])
@pytest.mark.parametrize("q", [1, 3, 8])
def test_the_block_equals_the_whole_sequence_in_matrix_form(q: int, bound: float | None) -> None:
    config = replace(odd(), gate_lower_bound=bound)
    w, x = block()
    want = second.kda(config, w, x.numpy())
    s, previous = state(9), 1
    for first in range(0, 24, q):
        slots = torch.arange(1, q + 1)[None]
        window = SlotWindow(q, slots, torch.tensor([previous]))
        got = kda(Context(config, F64), w, x[first : first + q], s, window)
        np.testing.assert_allclose(got, want.out[first : first + q], rtol=1e-9, atol=1e-12)
        for t in range(q):
            np.testing.assert_allclose(s.recurrent[1 + t], want.states[first + t], atol=1e-12)
        np.testing.assert_allclose(s.conv[1, :, q - 1 : q + 2].T, padded(want.raw)[first + q :][:3])
        previous = q


def padded(raw: second.Array) -> second.Array:
    return np.concatenate([np.zeros((3, raw.shape[1])), raw])


def test_the_state_is_not_rounded_between_the_tokens_of_a_window() -> None:
    """Served policies round o, never S: the state is wider than BF16 after every token."""
    w, x = block()
    s = KdaState(*(y.float() for y in (state(9).recurrent, state(9).conv)))
    window = SlotWindow(8, torch.arange(1, 9)[None], torch.tensor([1]))
    kda(Context(odd(), specialized()), widened(w, torch.float32), x[:8].float(), s, window)
    for slot in range(1, 9):
        assert (bf16(s.recurrent[slot]) != s.recurrent[slot]).any()


def test_padding_rows_are_exact_zeros_even_with_nan_everywhere() -> None:
    """NaN in the inputs, in the gates and in the null slot; slots and counts are garbage."""
    w, x = block()
    x = x[:6].clone()
    x[2:4] = torch.nan
    s = state(9)
    s.recurrent[0], s.conv[0] = torch.nan, torch.nan
    untouched = s.recurrent.clone(), s.conv.clone()
    window = SlotWindow(2, torch.tensor([[5, 3], [0, 0], [-1, -7]]), torch.tensor([1, 99, -3]))
    tap = Recorder()
    got = kda(Context(odd(), F64, tap=tap), w, x, s, window)
    want = second.kda(odd(), w, x[:2].numpy())
    np.testing.assert_allclose(got[:2], want.out, rtol=1e-9, atol=1e-12)
    assert (got[2:] == 0).all()
    assert (tap.values["kda.attn"][2:] == 0).all()
    idle = [0, 1, 2, 4, 6, 7, 8]
    assert torch.equal(s.recurrent[idle].nan_to_num(5.0), untouched[0][idle].nan_to_num(5.0))
    idle = [0, 1, 2, 3, 4, 6, 7, 8]
    assert torch.equal(s.conv[idle].nan_to_num(5.0), untouched[1][idle].nan_to_num(5.0))


def test_a_null_slot_inside_a_window_is_only_not_written() -> None:
    w, x = block()
    full, holed = state(9), state(9)
    one = torch.tensor([1])
    want = kda(
        Context(odd(), F64), w, x[:4], full, SlotWindow(4, torch.tensor([[1, 2, 3, 4]]), one)
    )
    got = kda(
        Context(odd(), F64), w, x[:4], holed, SlotWindow(4, torch.tensor([[1, 0, 3, -1]]), one)
    )
    assert torch.equal(got, want)
    assert torch.equal(holed.recurrent[[1, 3]], full.recurrent[[1, 3]])
    assert (holed.recurrent[[0, 2, 4, 8]] == 0).all()  # 8 is what index -1 would have hit


def test_the_start_state_is_read_before_its_slot_is_overwritten() -> None:
    """With one accepted token the start slot is also the first that is written, and the last
    position may be the start of the next window: all must come from the old contents."""
    w, x = block()
    s = state(9)
    slots = torch.arange(1, 9)[None]
    kda(Context(odd(), F64), w, x[:8], s, SlotWindow(8, slots, torch.tensor([1])))
    kda(Context(odd(), F64), w, x[8:16], s, SlotWindow(8, slots, torch.tensor([8])))
    want = second.kda(odd(), w, x[:16].numpy())
    np.testing.assert_allclose(s.recurrent[1:], want.states[8:], atol=1e-12)


STEPS = 8192
DECAYS = (0.0, 1e-4, 0.05, 5.0)
UNIT = 2.0**-24  # half an ulp of FP32 at 1
BOUND = 8 * UNIT


@cache
def drift(store: torch.dtype) -> tuple[Tensor, Tensor]:
    """Relative error of S and of o against float64 after 16, 32, ... 8192 steps.

    [times, head]: each head has decays about e^-DECAYS[head], and S is kept in `store`.
    """
    d, dim, heads = Draw(2, torch.float32), 16, len(DECAYS)
    rate = torch.tensor(DECAYS).view(1, 1, heads, 1)
    wide = torch.zeros(1, heads, dim, dim, dtype=torch.float64)
    narrow = wide.float()
    states, outs = [], []
    for t in range(STEPS):
        x = Inputs(
            q=l2_norm(d.normal(1, 1, heads, dim), 1e-6),
            k=l2_norm(d.normal(1, 1, heads, dim), 1e-6),
            v=d.normal(1, 1, heads, dim),
            g=-rate * d.uniform(0.5, 1.0, 1, 1, heads, dim),
            beta=d.uniform(0.1, 0.9, 1, 1, heads),
        )
        wide_x = Inputs(*(y.double() for y in (x.q, x.k, x.v, x.g, x.beta)))
        wide, _, wide_o = delta_step(wide, wide_x, 0)
        narrow, _, narrow_o = delta_step(narrow, x, 0)
        narrow = narrow.to(store).float()
        if t + 1 >= 16 and (t + 1) & t == 0:
            states.append((narrow - wide).norm(dim=(2, 3))[0] / wide.norm(dim=(2, 3))[0])
            outs.append((narrow_o - wide_o).norm(dim=2)[0] / wide_o.norm(dim=2)[0])
    return torch.stack(states), torch.stack(outs)


def test_8192_fp32_steps_stay_within_eight_units_of_float64() -> None:
    """Each step adds about one unit of error, and the delta rule contracts along k: with 16
    random keys an error is forgotten within some dozens of steps, even without any decay. So the
    stated bound is a constant, 8 x 2^-24 relative: it does not grow with the number of steps."""
    states, outs = drift(torch.float32)
    assert states.max() < BOUND
    assert outs.max() < 4 * BOUND  # o is a sum that may cancel
    assert (states[-1] < 2 * states[:3].max(0).values).all()


def test_a_bf16_state_would_miss_that_bound_by_far() -> None:
    states, _ = drift(torch.bfloat16)
    assert states.min() > 100 * BOUND
