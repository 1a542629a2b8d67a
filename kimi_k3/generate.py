# SPDX-License-Identifier: Apache-2.0
"""Prompts continued by an engine on every rank of one process, and what computed them.

Each rank runs the same engine over its own backend and decides by itself, from logits that have
the same bits on every rank; that all decided alike is checked at the end.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from fasttrack.errors import FasttrackError, InputError, Problem
from fasttrack.manifest.model import Region
from kimi_k3.activations import Load
from kimi_k3.assembly import shard
from kimi_k3.backends import RankModel, Setup
from kimi_k3.checkpoint import load_weights
from kimi_k3.config import K3Config
from kimi_k3.decode.comm.communicator import Exchanges
from kimi_k3.decode.comm.local import LocalGroup
from kimi_k3.decode.exchanges import exchanges_of
from kimi_k3.decode.executor import Executor
from kimi_k3.decode.plan import Planner, RowCounts
from kimi_k3.engine.engine import Engine
from kimi_k3.engine.metrics import EngineMetrics
from kimi_k3.engine.request import Request
from kimi_k3.engine.results import Result
from kimi_k3.random_init import random_weights
from kimi_k3.ranks import RankError, run_ranks
from kimi_k3.resident import resident, sums
from kimi_k3.sharding import Sharding
from kimi_k3.step import Backend
from kimi_k3.weights import ModelWeights

MAX_BYTES = 16 << 30
"""Weights, state and cache of all ranks together; one process is for small models."""

OPTIONS = {"prompt": "prompt-ids"}
"""Fields of a request whose option has another name."""
T = TypeVar("T")
WeightsOf = Callable[[int], ModelWeights]
"""One rank's weights."""


@dataclass(frozen=True)
class Generated:
    """What came of the prompts.

    Attributes:
        results: in the order of the requests.
        providers: who computed, each named once.
        steps: of the specialised path: `planned`, and those that the stock path took, by reason;
            empty when only the stock path was asked for.
        operators: who computed each operator of planned steps.
        metrics: what the engine counted.
    """

    results: tuple[Result, ...]
    providers: tuple[str, ...]
    steps: Mapping[str, int]
    operators: Mapping[str, str]
    metrics: EngineMetrics


def weights_source(config: K3Config, tp: int, path: Path | None, seed: int) -> WeightsOf:
    """Each rank's share of a checkpoint, or of random weights when `path` is None."""
    if path is not None:
        return lambda rank: load_weights(path, config, tp, rank)
    whole = lru_cache(maxsize=1)(lambda: random_weights(config, seed))
    return lambda rank: shard(whole(), config, tp, rank)


def generate(
    setup: Setup, weights_of: WeightsOf, requests: Sequence[Request], region: Region | None = None
) -> Generated:
    """Continues prompts.

    Args:
        setup: model, engine and ranks. Its engine is sized to run the requests side by side, as
            far as `max_requests` goes.
        weights_of: called once for each rank.
        requests: what to continue.
        region: of the scope manifest, which admits the specialised path; None for `auto`.

    Raises:
        InputError: a request, the division or the size is impossible, or the weights compute
            logits that are no numbers.
        RankError: ranks disagree; with one model on all ranks that is a fault of ours.
        DecodeFailure: a rank of the specialised path did not keep up.
    """
    Sharding(setup.config, setup.tp, 0, setup.options.dcp)
    problems = dict.fromkeys(p for r in requests for p in r.problems(setup.config))
    if problems:
        raise InputError([in_options(problem) for problem in problems])
    setup = setup.sized_for(requests)
    exchanges = None if region is None else planned_exchanges(setup, region)
    _check_size(setup, exchanges)

    def serve(rank: int, backend_of: Callable[[RankModel], Backend]) -> Generated:
        backend = backend_of(RankModel.build(setup, weights_of(rank)))
        engine = Engine(setup.config, backend, setup.options)
        results = tuple(engine.generate(requests))
        wrong = [result.problem for result in results if result.problem]
        if wrong:
            raise InputError(wrong)
        executor = backend if isinstance(backend, Executor) else None
        steps = executor.steps() if executor else {}
        operators = executor.served() if executor else {}
        return Generated(results, backend.providers(), steps, operators, engine.metrics)

    if region is None or exchanges is None:
        return _same(
            run_ranks(setup.tp, lambda comm: serve(comm.rank, lambda model: model.auto(comm)))
        )
    planner = Planner(region, RowCounts(), setup.options.speculation.draft)
    ended = LocalGroup(exchanges).run(
        lambda comm: serve(comm.rank, lambda model: model.specialized(comm, planner))
    )
    return _same([_value(one.failure, one.value) for one in ended])


def _value(failure: FasttrackError | None, value: T | None) -> T:
    """What a rank returned.

    Raises:
        FasttrackError: its failure.
    """
    if failure is not None:
        raise failure
    if value is None:
        raise RankError("a rank ended without a result")
    return value


def _same(ranks: Sequence[Generated]) -> Generated:
    """What all ranks generated.

    Raises:
        RankError: they generated different tokens.
    """
    first, *others = ranks
    tokens = [result.tokens for result in first.results]
    for rank, other in enumerate(others, start=1):
        if [result.tokens for result in other.results] != tokens:
            raise RankError(f"rank 0 generated {tokens}, rank {rank} others")
    return first


def planned_exchanges(setup: Setup, region: Region) -> Exchanges:
    """What the ranks exchange in planned steps."""
    dtype = setup.planned.compute
    return exchanges_of(setup.config, setup.tp, setup.options.dcp, region.rows_max, dtype)


def in_options(problem: Problem) -> Problem:
    """The same in the words of the command line."""
    names = [OPTIONS.get(name, name) for name in problem.where.split(", ")]
    where = ", ".join(f"--{name.lstrip('-').replace('_', '-')}" for name in names)
    fix = problem.fix.replace("max_tokens", "--max-tokens") if problem.fix else problem.fix
    return Problem(where, problem.saw, problem.want, fix)


def _check_size(setup: Setup, exchanges: Exchanges | None) -> None:
    """Refuses what does not fit before anything is allocated.

    Raises:
        InputError: see above.
    """
    config, shape = setup.config, setup.options.cache_shape
    total = sums(resident(Sharding(config, setup.tp, 0, setup.options.dcp), Load()))
    cache = total.cache * shape.pages * shape.page_size // config.max_positions
    each = total.weights + total.padding + total.state * (shape.slots - 1) + cache
    needed = setup.tp * (each + (exchanges.rank_bytes if exchanges else 0))
    if needed > MAX_BYTES:
        saw = f"{needed / 1e9:,.1f} GB of weights, state, cache and mailboxes"
        want = f"at most {MAX_BYTES / 1e9:,.1f} GB: all ranks live in one process"
        raise InputError.one("--config", saw, want, "--config tiny")
