# SPDX-License-Identifier: Apache-2.0
"""Captured decode steps of the stock path, one CUDA graph for each prepared shape.

A graph replays fixed addresses, so the tensors of a step are copied into buffers that were there
at capture, and outputs lie in memory that the next replay of the same shape overwrites. Whatever a
graph does not hold (prefills, mixtures, other shapes) runs operation by operation.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch

from kimi_k3.step import Backend, Group, Kind, Step, StepOutput, StepShape


@dataclass(frozen=True)
class _Captured:
    """One graph with the buffers that it reads and writes."""

    graph: torch.cuda.CUDAGraph
    step: Step
    output: StepOutput


@dataclass(frozen=True)
class GraphedModel:
    """A backend on a GPU whose prepared steps are one launch each.

    Attributes:
        model: what is captured, and takes every other step.
        columns: slots per request, 1 + the longest draft.
        pages: KV pages that one request may have.
        context: longest context in tokens; captured kernels are laid out for it.
    """

    model: Backend
    columns: int
    pages: int
    context: int
    _captured: dict[Group, _Captured] = field(default_factory=dict)

    def capture(self, groups: Iterable[Group], device: torch.device) -> None:
        """Captures one step for each group of windows; compiles what is not compiled yet.

        Capturing runs each step with padding requests only, which write no state.
        """
        for group in groups:
            self._captured[group] = self._capture(group, device)

    def _capture(self, group: Group, device: torch.device) -> _Captured:
        requests = group.requests

        def zeros(*size: int) -> torch.Tensor:
            return torch.zeros(size, dtype=torch.int32, device=device)

        step = Step(
            StepShape((group,), self.context),
            zeros(group.total),
            zeros(requests, self.columns),
            torch.ones_like(zeros(requests)),
            zeros(requests, self.pages),
            zeros(requests),
        )
        side = torch.cuda.Stream(device)
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):  # first runs compile and pick algorithms, outside the graph
            self.model.step(step)
            self.model.step(step)
        torch.cuda.current_stream(device).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            output = self.model.step(step)
        return _Captured(graph, step, output)

    def step(self, step: Step) -> StepOutput:
        """See `kimi_k3.step.Backend`; the output is valid until the next step of this shape."""
        group = step.shape.groups[0]
        found = self._captured.get(group) if len(step.shape.groups) == 1 else None
        if found is None or group.kind is not Kind.WINDOW or step.shape.context > self.context:
            return self.model.step(step)
        held = found.step
        held.token_ids.copy_(step.token_ids)
        held.slots[:, : step.slots.shape[1]].copy_(step.slots)
        held.accepted.copy_(step.accepted)
        held.block_table[:, : step.block_table.shape[1]].copy_(step.block_table)
        held.lengths.copy_(step.lengths)
        found.graph.replay()
        return found.output

    def providers(self) -> tuple[str, ...]:
        """See `kimi_k3.step.Backend`."""
        return self.model.providers()
