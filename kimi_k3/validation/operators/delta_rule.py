# SPDX-License-Identifier: Apache-2.0
"""The delta rule on a state in slots: `kimi_k3.reference.kda.delta_step` in float64.

The bound follows FP32 through the recurrence: the decayed state is off by the exponential's units,
each sum over a key by `TERMS` units of its absolute terms. A row whose slot is 0 or less is
padding: it answers zeros and touches no state.
"""

import torch

from kimi_k3.reference.kda import Inputs, delta_step
from kimi_k3.validation.case import Case, Content, Expected
from kimi_k3.validation.operators.base import (
    BF16_UNIT,
    FP32_UNIT,
    LEAST_NORMAL,
    drawn,
    generator,
    schema_of,
    spread,
    written,
)

TERMS = 64
"""Roundings between a product and the sum over a key of at most 128 values, in four lanes."""
EXPONENTIAL = 16
"""Units of a fast exponential and of its argument, per unit of the argument."""
READ = ("q", "k", "v", "log_decay", "beta")
KEPT = (torch.float64, torch.float64, torch.bool)
DECAYS = {"held": (-1e-6, 0.0), "forgotten": (-5.0, -4.99)}
"""Range of the log decay; the shipped lower bound is -5."""


class DeltaRule:
    """See `base.Operator`."""

    name = "delta-rule"
    schema = schema_of("delta_rule.yaml")
    places: tuple[str, ...] = ("slot_in", "slot_out")

    def content(self, case: Case) -> Content:
        """See `base.Operator`."""
        rng, rows = generator(case), case.rows
        heads, value, key = case.shape("state")[1:]
        family = case.family if case.family in {"heavy", "zeros"} else "normal"
        unit = key**-0.5
        low, high = DECAYS.get(case.family, (-5.0, 0.0))
        decay = low + (high - low) * torch.rand((rows, heads, key), generator=rng)
        found = {
            "q": drawn("normal", rng, rows, heads, key, scale=unit),
            "k": drawn("normal", rng, rows, heads, key, scale=unit),
            "v": drawn(family, rng, rows, heads, value),
            "log_decay": decay,
            "beta": torch.rand((rows, heads), generator=rng),
        }
        content = {name: spread(case, name, t) for name, t in found.items()}
        slot_in, slot_out, spare = _slots(case, rng)
        state = torch.full(case.shape("state"), torch.nan)
        read = slot_in[slot_in > 0].long()
        state[read] = drawn(family, rng, len(read), heads, value, key)
        slots = {"slot_in": slot_in, "slot_out": slot_out}
        # Rows that do not count name a slot all the same: whoever reads them writes there.
        content |= {name: spread(case, name, t, spare) for name, t in slots.items()}
        return content | {"state": state}

    def expected(self, case: Case, content: Content) -> dict[str, Expected]:
        """See `base.Operator`."""
        rows, live = case.rows, content["slot_in"][: case.rows] > 0
        x = _inputs(content, rows, torch.float64)
        s = _start(content, rows, torch.float64)
        after, u, o = delta_step(s, x, 0)
        state_off, out_off = _bounds(s, x, after, u)
        mask = live[:, None, None]
        off = out_off + BF16_UNIT * o.abs()
        out = written(case, "out", torch.where(mask, o, 0.0), torch.where(mask, off, 0.0))
        kept = Expected(*(torch.zeros(case.shape("state"), dtype=t) for t in KEPT))
        at = content["slot_out"][:rows][live].long()
        kept.value[at], kept.bound[at], kept.written[at] = after[live], state_off[live], True
        return {"out": out, "state": kept}

    def stock(self, case: Case, content: Content) -> dict[str, torch.Tensor]:
        """See `base.Operator`."""
        rows, live = case.rows, content["slot_in"][: case.rows] > 0
        s = _start(content, rows, torch.float32)
        after, _, o = delta_step(s, _inputs(content, rows, torch.float32), 0)
        out = torch.zeros(case.shape("out"), dtype=torch.bfloat16)
        out[:rows] = torch.where(live[:, None, None], o, 0.0).to(torch.bfloat16)
        state = content["state"].clone()
        state[content["slot_out"][:rows][live].long()] = after[live]
        return {"out": out, "state": state}

    def bytes_moved(self, case: Case) -> int:
        """See `base.Operator`."""
        heads, value, key = case.shape("state")[1:]
        vectors = 2 * (2 * key + 2 * value) + 4 * (key + 1)
        return case.rows * heads * (2 * 4 * value * key + vectors)

    def tolerances(self) -> tuple[tuple[str, str, float, str], ...]:
        """See `base.Operator`."""
        sums = f"sums over the key with at most {TERMS} FP32 roundings"
        return (
            ("out", "bf16", BF16_UNIT, f"one rounding, and {sums}"),
            ("state", "fp32", EXPONENTIAL * FP32_UNIT, f"a fast exponential, and {sums}"),
        )


def _slots(case: Case, rng: torch.Generator) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Where each row reads and writes, no slot twice, and a slot that no row has."""
    count, rows = case.shape("state")[0], case.rows
    if count < 2 * rows + 2:
        raise ValueError(f"{count} slots for {rows} rows; at least {2 * rows + 2}")
    order = torch.randperm(count - 1, generator=rng) + 1
    slot_in = order[:rows].to(torch.int32)
    slot_out = (order[rows : 2 * rows] if case.family == "moved" else order[:rows]).to(torch.int32)
    if case.family == "padded":
        gone = torch.rand(rows, generator=rng) < 0.4
        gone[0] = True
        slot_in = torch.where(gone, 0, slot_in)
        slot_out = torch.where(gone, 0, slot_out)
    return slot_in, slot_out, int(order[2 * rows])


def _inputs(content: Content, rows: int, dtype: torch.dtype) -> Inputs:
    """What the recurrence reads, one token of each row."""
    q, k, v, g, beta = (content[name][:rows, None].to(dtype) for name in READ)
    return Inputs(q, k, v, g, beta)


def _start(content: Content, rows: int, dtype: torch.dtype) -> torch.Tensor:
    """The state that each row reads; zeros for padding."""
    at = content["slot_in"][:rows].long()
    read = content["state"][at.clamp(min=0)].to(dtype)
    return torch.where((at > 0)[:, None, None, None], read, 0.0)


def _bounds(
    s: torch.Tensor, x: Inputs, after: torch.Tensor, u: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """How far the new state and the output, before it is rounded, may be from theirs."""
    q, k, v, beta, g = x.q[:, 0], x.k[:, 0], x.v[:, 0], x.beta[:, 0], x.g[:, 0]
    decayed = (s * torch.exp(g)[:, :, None]).abs()  # [R, h, value, key]
    decay = FP32_UNIT * (EXPONENTIAL * (1 + g.abs().amax(-1)) + 1)  # [R, h]
    seen = (decayed * k.abs()[:, :, None]).sum(3)  # [R, h, value]
    seen_off = (decay[:, :, None] + TERMS * FP32_UNIT) * seen
    u_off = beta[:, :, None] * (seen_off + 4 * FP32_UNIT * (v.abs() + seen))
    added = u.abs()[..., None] * k.abs()[:, :, None]
    off = decay[:, :, None, None] * decayed + u_off[..., None] * k.abs()[:, :, None]
    off = off + 4 * FP32_UNIT * (decayed + added) + LEAST_NORMAL
    out = ((off + TERMS * FP32_UNIT * after.abs()) * q.abs()[:, :, None]).sum(3)
    return off, out * (1 + BF16_UNIT)
