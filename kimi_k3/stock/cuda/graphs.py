# SPDX-License-Identifier: Apache-2.0
"""Captured decode steps of the stock path, one CUDA graph for each prepared shape.

A graph replays fixed addresses, so the tensors of a step are copied into buffers that were there
at capture. All graphs share one pool of memory: what a replay returns is valid until the next
step. Whatever no graph holds (prefills, mixtures, other or larger shapes) runs operation by
operation.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

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
    _pool: Any = field(default_factory=torch.cuda.graph_pool_handle)
    _warm_up: torch.cuda.Stream = field(default_factory=torch.cuda.Stream)

    def capture(self, groups: Iterable[Group], device: torch.device) -> None:
        """Captures one step for each group of windows; compiles what is not compiled yet.

        Capturing runs each step with padding requests only, which write no state.

        Raises:
            ValueError: a group of prefills, which allocate as they go.
        """
        for group in groups:
            if group.kind is not Kind.WINDOW:
                raise ValueError(f"{group} can not be captured; want windows")
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
        side = self._warm_up
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):  # first runs compile and pick algorithms, outside the graph
            self.model.step(step)
            self.model.step(step)
        torch.cuda.current_stream(device).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            output = self.model.step(step)
        return _Captured(graph, step, output)

    def step(self, step: Step) -> StepOutput:
        """See `kimi_k3.step.Backend`; the output is valid until the next step."""
        found = self._captured.get(step.shape.groups[0])
        if found is None or not self._holds(step):
            return self.model.step(step)
        held = found.step
        held.token_ids.copy_(step.token_ids)
        held.slots[:, : step.slots.shape[1]].copy_(step.slots)
        held.accepted.copy_(step.accepted)
        held.block_table[:, : step.block_table.shape[1]].copy_(step.block_table)
        held.lengths.copy_(step.lengths)
        found.graph.replay()
        return found.output

    def _holds(self, step: Step) -> bool:
        """Whether the captured buffers have room for a step."""
        return (
            len(step.shape.groups) == 1
            and step.shape.context <= self.context
            and step.slots.shape[1] <= self.columns
            and step.block_table.shape[1] <= self.pages
        )

    def providers(self) -> tuple[str, ...]:
        """See `kimi_k3.step.Backend`."""
        return self.model.providers()
