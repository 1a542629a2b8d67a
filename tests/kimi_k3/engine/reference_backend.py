# SPDX-License-Identifier: Apache-2.0
"""The reference model as a backend: every request of a group by itself, prompts token by token."""

from dataclasses import dataclass

import torch

from kimi_k3.reference.model import Model
from kimi_k3.reference.state import Caches, CacheShape, KvCache, allocate
from kimi_k3.step import GroupTensors, Kind, Step, StepOutput


@dataclass
class ReferenceBackend:
    """One rank's reference model with its caches."""

    model: Model
    caches: Caches

    @classmethod
    def allocate(cls, model: Model, shape: CacheShape, interleave: int = 1) -> "ReferenceBackend":
        ctx = model.ctx
        kv = KvCache(torch.empty(0, dtype=ctx.rounding.stored), interleave=interleave)
        return cls(model, allocate(ctx.config, model.weights, ctx.rounding, shape, kv))

    def providers(self) -> tuple[str, ...]:
        return ("reference",)

    def step(self, step: Step) -> StepOutput:
        hidden, logits = [], []
        for part in step.parts():
            token_ids = step.token_ids[part.rows]
            if part.group.kind is Kind.WINDOW:
                output = self._rows(token_ids, part.group.rows, part, part.slots, part.lengths)
                hidden.append(output.hidden)
                logits.append(output.logits)
            else:
                last = self._prefill(token_ids.view(part.group.requests, -1), part)
                hidden.append(last.hidden)
                logits.append(last.logits)
        return StepOutput(torch.cat(hidden), (), torch.cat(logits))

    def _rows(
        self,
        token_ids: torch.Tensor,
        q: int,
        part: GroupTensors,
        slots: torch.Tensor,
        lengths: torch.Tensor,
    ) -> StepOutput:
        output = self.model.step(
            token_ids,
            q,
            self.caches,
            slots=slots,
            accepted=part.accepted,
            block_table=part.block_table,
            lengths=lengths,
        )
        return StepOutput(output.hidden, output.aux, output.logits)

    def _prefill(self, token_ids: torch.Tensor, part: GroupTensors) -> StepOutput:
        """`token_ids` [R, T], column by column: all requests' tokens at one place of the chunk."""
        rows = part.group.rows
        for slot, length in zip(part.slots[:, 0].tolist(), part.lengths.tolist(), strict=True):
            if length == rows:
                self.caches.reset(slot)
        for place in range(rows):
            lengths = part.lengths - rows + place + 1
            output = self._rows(token_ids[:, place], 1, part, part.slots[:, :1], lengths)
        return output
