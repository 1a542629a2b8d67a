# SPDX-License-Identifier: Apache-2.0
"""One rank's backend, built: `auto`, or `latency_specialized` with `auto` under it.

Both work on the same caches, allocated here for an engine's settings.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from kimi_k3.config import K3Config
from kimi_k3.decode.comm.interface import DecodeCommunicator, Site
from kimi_k3.decode.executor import Executor
from kimi_k3.decode.plan import Planner
from kimi_k3.decode.providers import reference_providers
from kimi_k3.engine.options import EngineConfig
from kimi_k3.engine.request import Request
from kimi_k3.packed import PackedModel, pack
from kimi_k3.ranks import Communicator, SingleRank
from kimi_k3.reference.context import Context
from kimi_k3.reference.state import FP8, Caches, KvCache, allocate
from kimi_k3.rounding import Rounding, bf16, keep, mxfp8_amax, mxfp8_floor, specialized, stock
from kimi_k3.step import Backend, Group, Kind
from kimi_k3.stock.model import StockModel
from kimi_k3.stock.torch_ops import TorchOps
from kimi_k3.weights import ModelWeights

W = TypeVar("W", ModelWeights, PackedModel)

FLOOR_RULE_TP = 8
"""The tensor parallelism whose expert kernels scale their hidden rows by the floor rule."""


@dataclass(frozen=True)
class Setup:
    """What all ranks of a server agree on.

    Attributes:
        config: the model.
        options: the engine's settings.
        tp: ranks.
        fp8_cache: keep the KV cache in FP8 e4m3, else in the rounding's own format.
        rounding: of the stock path; None is the stock column of spec 2.8.
        planned_rounding: of planned steps; None is the specialised column for W4A16 experts.
        aux_layers: layers whose residual stream a drafter reads.
        decode_operators: who computes planned steps: `reference` or `prepared`.
        decode_kernels: where cubins of the decode kernels are kept, which then serve planned steps;
            None for none of them.
    """

    config: K3Config
    options: EngineConfig
    tp: int = 1
    fp8_cache: bool = False
    rounding: Rounding | None = None
    planned_rounding: Rounding | None = None
    aux_layers: tuple[int, ...] = ()
    decode_operators: str = "reference"
    decode_kernels: Path | None = None

    @property
    def device(self) -> torch.device:
        """Of weights, caches and steps."""
        return torch.device(self.options.device)

    @property
    def stock_rounding(self) -> Rounding:
        """Of the stock path."""
        return self.rounding or stock()

    @property
    def planned(self) -> Rounding:
        """Of planned steps."""
        return self.planned_rounding or specialized_rounding("bf16", self.tp)

    def sized_for(self, requests: Sequence[Request]) -> "Setup":
        """The same with just enough slots and pages to run `requests` side by side."""
        return replace(self, options=self.options.sized_for(self.config, requests))


def moved(weights: W, device: torch.device) -> W:
    """The same weights on `device`; what is there already stays where it is."""

    def move(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.to(device)
        if isinstance(value, tuple):
            return tuple(move(item) for item in value)
        if is_dataclass(value):
            kind: Any = type(value)
            return kind(*(move(getattr(value, field.name)) for field in fields(value)))
        return value

    here: W = move(weights)
    return here


def specialized_rounding(activations: str, tp: int) -> Rounding:
    """The specialised column of spec 2.8.

    Args:
        activations: what the experts multiply with their weights, in the manifest's words.
        tp: ranks; the rule for MXFP8 hidden rows differs between the kernels of TP 8 and TP 16.
    """
    if activations == "mxfp8":
        return specialized(mxfp8_floor if tp == FLOOR_RULE_TP else mxfp8_amax)
    return replace(specialized(bf16), expert_input=keep)


@dataclass(frozen=True)
class RankModel:
    """One rank's weights and caches.

    Attributes:
        setup: what all ranks agree on.
        weights: this rank's, packed.
        caches: what every backend of the rank works on.
    """

    setup: Setup
    weights: PackedModel
    caches: Caches

    @classmethod
    def build(cls, setup: Setup, weights: ModelWeights) -> "RankModel":
        """Packs the weights and allocates the caches.

        Args:
            setup: what all ranks agree on.
            weights: this rank's, on any device.
        """
        weights = moved(weights, setup.device)
        dtype = FP8 if setup.fp8_cache else setup.stock_rounding.stored
        form = KvCache(torch.empty(0, dtype=dtype), interleave=setup.options.interleave)
        caches = allocate(
            setup.config, weights, setup.stock_rounding, setup.options.cache_shape, form
        )
        return cls(setup, pack(setup.config, weights), caches)

    def auto(self, comm: Communicator) -> Backend:
        """The stock path.

        Args:
            comm: the ranks.
        """
        setup = self.setup
        dcp = comm if setup.options.dcp > 1 else SingleRank()
        context = Context(setup.config, setup.stock_rounding, comm, dcp)
        if setup.device.type == "cuda":
            return self._graphed(context)
        ops = TorchOps(context, self.weights)
        return StockModel(setup.config, self.weights, self.caches, ops, setup.aux_layers)

    def _graphed(self, context: Context) -> Backend:
        """The stock path on a GPU, its decode steps captured."""
        from kimi_k3.stock.cuda.graphs import GraphedModel  # noqa: PLC0415  (needs Triton)
        from kimi_k3.stock.cuda.ops import DECODE_ROWS, CudaOps  # noqa: PLC0415

        setup, options = self.setup, self.setup.options
        ops = CudaOps(context, self.weights)
        model = StockModel(setup.config, self.weights, self.caches, ops, setup.aux_layers)
        pages = options.layout.pages(setup.config.max_positions)
        graphed = GraphedModel(
            model, options.window, min(pages, options.pages), setup.config.max_positions
        )
        steps = {
            Group(Kind.WINDOW, options.padding(live, width), width)
            for live in range(1, options.max_requests + 1)
            for width in {1, options.window}
        }
        small = [step for step in steps if step.total <= DECODE_ROWS]
        graphed.capture(sorted(small, key=lambda step: step.total), setup.device)
        return graphed

    def specialized(self, comm: DecodeCommunicator, planner: Planner) -> Executor:
        """The specialised path, with `auto` for all other steps.

        Args:
            comm: the ranks.
            planner: decides which steps are taken.
        """
        setup = self.setup
        rounding = setup.planned
        dcp = comm.at(Site.DCP) if setup.options.dcp > 1 else SingleRank()
        context = Context(setup.config, rounding, comm, dcp)
        executor = Executor(
            config=setup.config,
            weights=self.weights,
            caches=self.caches,
            planner=planner,
            operators=reference_providers(context, self.weights, comm),
            comm=comm,
            stock=self.auto(comm.stock),
            aux_layers=setup.aux_layers,
            compute=rounding.compute,
        )
        if setup.decode_operators == "prepared":
            from kimi_k3.mini.assembly import prepared  # noqa: PLC0415  (a path that may go)

            executor = prepared(executor, context)
        if setup.decode_kernels is not None:
            from kimi_k3.decode.kernels.serve import with_kernels  # noqa: PLC0415  (needs a GPU)

            executor = with_kernels(executor, context, setup.tp, setup.decode_kernels)
        return executor
