# SPDX-License-Identifier: Apache-2.0
"""An honest delta rule on a state in slots, one kernel of plain PyTorch; and its faults."""

import torch

from kimi_k3.validation.controls.interpreted import (
    Interpreted,
    Operands,
    by_name,
    source_digest,
)
from kimi_k3.validation.launcher import Launcher

KERNELS = ("delta",)


class Delta:
    """See `launcher.Program`; faults replace one method each."""

    def __init__(self) -> None:
        self._kernel = Interpreted("delta", source_digest(__file__), self.delta)

    def run(self, launcher: Launcher, operands: Operands, rows: int) -> None:
        """See `launcher.Program`."""
        launcher.launch(self._kernel, operands, rows)

    def delta(self, o: Operands, rows: int) -> None:
        """Kernel: one token of each row."""
        done = [self.row(o, row) for row in range(rows)]
        for row, (state, out) in enumerate(done):
            o["out"][row] = out
            self.keep(o, int(o["slot_out"][row]), state)

    def row(self, o: Operands, row: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The new state [h, value, key] of a row, and its output [h, value]; zeros for padding."""
        slot = int(o["slot_in"][row])
        s = o["state"][slot].clone() if slot > 0 else torch.zeros_like(o["state"][0])
        if slot <= 0:
            return s, s[..., 0]
        q, k, v = (o[name][row].float() for name in ("q", "k", "v"))
        s = s * torch.exp(o["log_decay"][row])[:, None]
        u = self.gain(o["beta"][row])[:, None] * (v - (s * k[:, None]).sum(2))
        s = s + u[..., None] * k[:, None]
        return s, (s * q[:, None]).sum(2)

    def gain(self, beta: torch.Tensor) -> torch.Tensor:
        """How much of what is missing is learnt, [h]."""
        return beta

    def keep(self, o: Operands, slot: int, state: torch.Tensor) -> None:
        """Stores a state where it belongs; padding has no place."""
        if slot > 0:
            o["state"][slot] = state


class NarrowState(Delta):
    """The state is rounded to BF16 where it is kept."""

    def keep(self, o: Operands, slot: int, state: torch.Tensor) -> None:
        """See `Delta`."""
        super().keep(o, slot, state.to(torch.bfloat16).float())


class Drifts(Delta):
    """Each step takes a unit off the state, which no single step shows."""

    def keep(self, o: Operands, slot: int, state: torch.Tensor) -> None:
        """See `Delta`."""
        super().keep(o, slot, state * (1 - 2.0**-23))


class NarrowGain(Delta):
    """The gain is rounded to BF16."""

    def gain(self, beta: torch.Tensor) -> torch.Tensor:
        """See `Delta`."""
        return beta.to(torch.bfloat16).float()


class PaddingWrites(Delta):
    """Padded rows keep their zeros in slot 0."""

    def keep(self, o: Operands, slot: int, state: torch.Tensor) -> None:
        """See `Delta`."""
        o["state"][max(slot, 0)] = state


class UnitStride(Delta):
    """Takes a column of a table for a table of its own."""

    def delta(self, o: Operands, rows: int) -> None:
        """See `Delta`."""
        column = o["slot_in"]
        super().delta({**o, "slot_in": column.as_strided(column.shape, (1,))}, rows)


class WritesWhereItRead(Delta):
    """A state goes back to the slot that it came from, and to its own."""

    def delta(self, o: Operands, rows: int) -> None:
        """See `Delta`."""
        super().delta(o, rows)
        for row in range(rows):
            came, goes = int(o["slot_in"][row]), int(o["slot_out"][row])
            if came > 0:
                o["state"][came] = o["state"][goes]


class ServesAllRows(Delta):
    """Also computes the rows behind the last one."""

    def delta(self, o: Operands, rows: int) -> None:
        """See `Delta`."""
        super().delta(o, len(o["slot_in"]))


FAULTS = by_name(Delta, __name__)


def program(fault: str = "", folder: str = "") -> Delta:
    """The program of a candidate.

    Args:
        fault: a name in `FAULTS`, or none.
        folder: not used.
    """
    return FAULTS[fault]() if fault else Delta()
