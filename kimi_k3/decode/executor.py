# SPDX-License-Identifier: Apache-2.0
"""`latency_specialized`: planned steps run over fused operators, all others over the stock path.

A step (1) is planned, from host state that every rank shares. If the plan declines it, (2) the
stock path computes it on the same slots and pages, and nothing else is touched. Otherwise (3) the
step counter moves, (4) the layer loop runs operator by operator, and (5) the fail word is read
before any token of the step can be released.

Once a wait of a step has failed, the rest of it drains: operators go on with zeros, state slots and
KV pages are no longer written, and (5) raises. Whatever ends a step early, the executor is unusable
from then on: its caches may be ahead of its requests.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import torch

from fasttrack.errors import FasttrackError
from kimi_k3.config import K3Config
from kimi_k3.decode.comm.interface import DecodeCommunicator
from kimi_k3.decode.plan import Fallback, Planner
from kimi_k3.decode.providers import Providers
from kimi_k3.packed import PackedKda, PackedLayer, PackedMla, PackedModel, PackedMoe
from kimi_k3.reference.state import Caches, KdaState, KvCache
from kimi_k3.step import Backend, GroupTensors, Step, StepOutput, lasting

STOCK = "stock"
PLANNED = "planned"


@dataclass(frozen=True)
class Executor:
    """One rank's `latency_specialized` backend.

    Attributes:
        config: the whole model's configuration.
        weights: this rank's.
        caches: state slots and pages, shared with `stock`.
        planner: decides which steps are taken here.
        operators: who computes what.
        comm: the ranks of planned steps.
        stock: takes every other step, on the same caches.
        aux_layers: layers whose residual stream `StepOutput.aux` carries, in this order.
        compute: dtype of the residual stream.
    """

    config: K3Config
    weights: PackedModel
    caches: Caches
    planner: Planner
    operators: Providers
    comm: DecodeCommunicator
    stock: Backend
    aux_layers: tuple[int, ...] = ()
    compute: torch.dtype = torch.float32
    _taken: Counter[str] = field(default_factory=Counter)
    _failures: list[FasttrackError] = field(default_factory=list)

    def step(self, step: Step) -> StepOutput:
        """See `kimi_k3.step.Backend`.

        Raises:
            DecodeFailure: a rank did not keep up; no token of this step may be released.
            FasttrackError: an earlier step did not end, with what ended it.
        """
        if self._failures:
            raise self._failures[0]
        plan = self.planner.plan(step.shape)  # (1)
        with self._failing_for_good():
            if isinstance(plan, Fallback):
                output, taken = self.stock.step(step), plan.reason.value  # (2)
            else:
                self.comm.begin_step(step.shape.rows)  # (3)
                output, taken = self._run(step), PLANNED  # (4)
                self.comm.end_step()  # (5)
        self._taken[taken] += 1
        return output

    @contextmanager
    def _failing_for_good(self) -> Iterator[None]:
        """Remembers what ended a step."""
        try:
            yield
        except BaseException as error:  # also an interrupt
            self._failures.append(lasting(error))
            raise

    def _run(self, step: Step) -> StepOutput:
        """The depth loop over one group of windows."""
        run, (part,) = self.operators, step.parts()
        size = (step.shape.rows, self.config.num_blocks, self.config.hidden_size)
        blocks = torch.empty(size, dtype=self.compute, device=step.token_ids.device)
        prefix, delta, saved, streams = run.embed(step.token_ids), None, 0, {}
        kept = {index + 1 for index in self.aux_layers}  # what leaves a layer enters the next one
        for index, layer in enumerate(self.weights.layers):
            writes = self.config.writes_block(index)
            block = blocks[:, saved] if writes else None
            x, prefix = run.mix(layer.attention_mix, prefix, delta, blocks[:, :saved], block)
            if index in kept:
                streams[index] = prefix
            saved += writes
            heads = self._attention(layer, x, self.caches.layers[index], self._guarded(part))
            y, prefix = run.attention_out(
                layer.attention.o_proj,
                heads,
                layer.ffn_mix,
                None if writes else prefix,
                blocks[:, :saved],
            )
            delta = self._ffn(layer, y)
        hidden, prefix = run.mix(self.weights.final_mix, prefix, delta, blocks[:, :saved], None)
        streams[len(self.weights.layers)] = prefix
        aux = tuple(streams[index + 1] for index in self.aux_layers)
        return StepOutput(hidden, aux, run.head(hidden))

    def _attention(
        self, layer: PackedLayer, x: torch.Tensor, state: KdaState | KvCache, part: GroupTensors
    ) -> torch.Tensor:
        """This rank's heads [M, h] of one layer, before the output projection."""
        run = self.operators
        match layer.attention, state:
            case PackedKda() as w, KdaState():
                return run.kda_core(w, run.kda_in(w, x), state, part)
            case PackedMla() as w, KvCache():
                query, gate = run.mla_query(w, run.mla_in(w, x), state, part)
                return run.mla_value(w, run.mla_core(query, state, part), gate, part)
            case _:
                raise ValueError("the caches were allocated for another model")

    def _ffn(self, layer: PackedLayer, y: torch.Tensor) -> torch.Tensor:
        """The delta [M, H] of one layer's FFN."""
        run, w = self.operators, layer.ffn
        if not isinstance(w, PackedMoe):
            return run.dense(w, y)
        logits, z = run.moe_front(w, y)
        shared = run.moe_shared(w, y)
        ids, weights = run.moe_route(w, logits)
        return run.moe_tail(w, run.moe_experts(w, ids, weights, z), shared)

    def _guarded(self, part: GroupTensors) -> GroupTensors:
        """`part`, or only padding once a wait has failed: padding writes nothing.

        KDA knows padding by its slot and MLA by its length.
        """
        if not self.comm.failed:
            return part
        return replace(
            part,
            slots=torch.zeros_like(part.slots),
            lengths=torch.zeros_like(part.lengths),
        )

    def steps(self) -> Mapping[str, int]:
        """Steps that ended so far: `planned`, and those that the stock path took, by reason."""
        return dict(self._taken)

    def served(self) -> Mapping[str, str]:
        """Who has computed each operator of the planned steps so far."""
        return dict(self.operators.ran())

    def providers(self) -> tuple[str, ...]:
        """Who has computed so far, each named once; `stock` for steps that fell back."""
        fell_back = any(reason != PLANNED for reason in self._taken)
        return (*dict.fromkeys(self.served().values()), *((STOCK,) if fell_back else ()))
