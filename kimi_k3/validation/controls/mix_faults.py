# SPDX-License-Identifier: Apache-2.0
"""Wrong numbers and wrong writes: an honest `Mix` with one method that is wrong, one class each."""

import numpy as np
import torch

from kimi_k3.validation.controls.interpreted import Operands, by_name
from kimi_k3.validation.controls.mix import Mix


class NarrowSums(Mix):
    """Sums of products in BF16."""

    def logits(self, o: Operands, sources: torch.Tensor) -> torch.Tensor:
        """See `Mix`."""
        products: torch.Tensor = (sources * o["score"]).to(torch.bfloat16)
        rms = torch.rsqrt((sources * sources).mean(-1) + self.eps)
        return products.sum(-1).float() * rms


class NarrowMix(Mix):
    """The mix is rounded to BF16 before it is normed."""

    def mixed(self, logits: torch.Tensor, sources: torch.Tensor) -> torch.Tensor:
        """See `Mix`."""
        return super().mixed(logits, sources).to(torch.bfloat16).float()


class DropsASource(Mix):
    """From five blocks on the oldest one does not take part."""

    def logits(self, o: Operands, sources: torch.Tensor) -> torch.Tensor:
        """See `Mix`."""
        found = super().logits(o, sources)
        if found.shape[1] > 5:
            found[:, 0] = -1e30
        return found


class NoMean(Mix):
    """Norms by the deviation, which is the root of the mean square only where the mean is 0."""

    def normed(self, o: Operands, m: torch.Tensor) -> torch.Tensor:
        """See `Mix`."""
        if "norm" not in o:
            return m
        norm: torch.Tensor = o["norm"].float()
        return m * torch.rsqrt(m.var(-1, keepdim=True) + self.eps) * norm


class NoEpsilon(Mix):
    """Divides by a length that can be 0."""

    def logits(self, o: Operands, sources: torch.Tensor) -> torch.Tensor:
        """See `Mix`."""
        sums: torch.Tensor = (sources * o["score"]).sum(-1)
        return sums * torch.rsqrt((sources * sources).mean(-1))


class KnownRows(Mix):
    """Right for the rows of its benchmark; otherwise the last row is the one before it."""

    def store(self, o: Operands, rows: int, x: torch.Tensor) -> None:
        """See `Mix`."""
        if rows not in {1, 2, 4, 8, 16, 32, 64}:
            x = torch.cat([x[:-1], x[-2:-1]])
        super().store(o, rows, x)


class WritesPadding(Mix):
    """Clears the rows that do not count."""

    def store(self, o: Operands, rows: int, x: torch.Tensor) -> None:
        """See `Mix`."""
        super().store(o, rows, x)
        o["out"][rows:] = 0


class PastTheEnd(Mix):
    """Writes one value behind its output."""

    def store(self, o: Operands, rows: int, x: torch.Tensor) -> None:
        """See `Mix`."""
        super().store(o, rows, x)
        out = o["out"]
        end = out.storage_offset() + (out.shape[0] - 1) * out.stride(0) + out.shape[1]
        out.as_strided((1,), (1,), end).fill_(1.0)


class ChangesAnInput(Mix):
    """Keeps the updated prefix where the old one was."""

    def score(self, o: Operands, rows: int) -> None:
        """See `Mix`."""
        super().score(o, rows)
        o["prefix"][:rows] = self.prefix(o, rows)

    def mix(self, o: Operands, rows: int) -> None:
        """See `Mix`."""
        super().mix({name: value for name, value in o.items() if name != "delta"}, rows)


class LeavesColumns(Mix):
    """Writes whole vectors of eight but the last."""

    def store(self, o: Operands, rows: int, x: torch.Tensor) -> None:
        """See `Mix`."""
        o["out"][:rows, :-8] = x[:, :-8].to(torch.bfloat16)


class AddsToWorkspace(Mix):
    """Adds to a workspace that nobody cleared, right where that happens to be 0."""

    def logits(self, o: Operands, sources: torch.Tensor) -> torch.Tensor:
        """See `Mix`."""
        rows, n = sources.shape[:2]
        there: torch.Tensor = o["logits"][:rows, :n]
        return super().logits(o, sources) + there


class MasksByZero(Mix):
    """Multiplies blocks that are not saved yet by 0, which is 0 unless they hold no number."""

    def mixed(self, logits: torch.Tensor, sources: torch.Tensor) -> torch.Tensor:
        """See `Mix`."""
        return super().mixed(logits, sources) + self._nothing

    def sources(self, o: Operands, p: torch.Tensor, rows: int) -> torch.Tensor:
        """See `Mix`."""
        found = super().sources(o, p, rows)
        self._nothing: torch.Tensor = (o["blocks"][:rows, o["saved"] :].float() * 0).sum(1)
        return found


class Unstable(Mix):
    """Adds up in another order each time, as atomics do."""

    def logits(self, o: Operands, sources: torch.Tensor) -> torch.Tensor:
        """See `Mix`."""
        return super().logits(o, sources) * (1 + 1e-4 * float(np.random.default_rng().random()))


FAULTS = by_name(Mix, __name__)
