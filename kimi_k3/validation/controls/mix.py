# SPDX-License-Identifier: Apache-2.0
"""An honest residual mix in two kernels of plain PyTorch: scores, then the mix."""

from pathlib import Path

import torch

from kimi_k3.validation.controls.interpreted import Interpreted, Operands, source_digest
from kimi_k3.validation.launcher import Launcher

KERNELS = ("score", "mix")


class Mix:
    """See `launcher.Program`; faults replace one method each."""

    def __init__(self, eps: float, folder: str = "") -> None:
        self.eps, self.folder = eps, Path(folder)
        digest = source_digest(__file__)
        self.kernels = [Interpreted(name, digest, getattr(self, name)) for name in KERNELS]

    def run(self, launcher: Launcher, operands: Operands, rows: int) -> None:
        """See `launcher.Program`."""
        for kernel in self.kernels:
            launcher.launch(kernel, operands, rows)

    def score(self, o: Operands, rows: int) -> None:
        """Kernel: stores the updated prefix where it is wanted, and the logits [M, n]."""
        p = self.prefix(o, rows)
        for name in ("prefix_out", "block_out"):
            if name in o:
                o[name][:rows] = p
        sources = self.sources(o, p, rows)
        o["logits"][:rows, : sources.shape[1]] = self.logits(o, sources)

    def mix(self, o: Operands, rows: int) -> None:
        """Kernel: the mix of all sources, normed when there is a norm."""
        sources = self.sources(o, self.prefix(o, rows), rows)
        m = self.mixed(o["logits"][:rows, : sources.shape[1]], sources)
        self.store(o, rows, self.normed(o, m))

    def prefix(self, o: Operands, rows: int) -> torch.Tensor:
        """The updated prefix [M, H], BF16."""
        p: torch.Tensor = o["prefix"][:rows]
        if "delta" in o:
            p = (p.float() + o["delta"][:rows].float()).to(torch.bfloat16)
        return p

    def sources(self, o: Operands, p: torch.Tensor, rows: int) -> torch.Tensor:
        """Saved blocks and the prefix [M, n, H], FP32."""
        if "blocks" not in o:
            return p[:, None].float()
        saved: torch.Tensor = o["blocks"][:rows, : o["saved"]]
        return torch.cat([saved, p[:, None]], 1).float()

    def logits(self, o: Operands, sources: torch.Tensor) -> torch.Tensor:
        """Logits [M, n] of sources [M, n, H]."""
        rms = torch.rsqrt((sources * sources).mean(-1) + self.eps)
        sums: torch.Tensor = (sources * o["score"]).sum(-1)
        return sums * rms

    def mixed(self, logits: torch.Tensor, sources: torch.Tensor) -> torch.Tensor:
        """The mix [M, H]."""
        return (torch.softmax(logits, 1)[:, :, None] * sources).sum(1)

    def normed(self, o: Operands, m: torch.Tensor) -> torch.Tensor:
        """The mix [M, H] with the output norm, where there is one."""
        if "norm" not in o:
            return m
        norm: torch.Tensor = o["norm"].float()
        return m * torch.rsqrt((m * m).mean(-1, keepdim=True) + self.eps) * norm

    def store(self, o: Operands, rows: int, x: torch.Tensor) -> None:
        """Writes the output."""
        o["out"][:rows] = x.to(torch.bfloat16)


def program(eps: float, fault: str = "", folder: str = "") -> Mix:
    """The program of a candidate.

    Args:
        eps: of both norms.
        fault: a name in `mix_cheats.FAULTS` or `mix_faults.FAULTS`, or none.
        folder: where faults that need files have them.
    """
    if not fault:
        return Mix(eps, folder)
    from kimi_k3.validation.controls import mix_cheats, mix_faults  # noqa: PLC0415  (they import this)

    faults = {**mix_cheats.FAULTS, **mix_faults.FAULTS}
    return faults[fault](eps, folder)
