# SPDX-License-Identifier: Apache-2.0
"""A rank is lost: every other one raises the same error, and no token of that step comes out."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch

from fasttrack.manifest.model import Region
from kimi_k3.assembly import shard
from kimi_k3.backends import RankModel, Setup
from kimi_k3.config import tiny
from kimi_k3.decode.comm.faults import Delay, Drop, FallBack, Fault, Kill, Place
from kimi_k3.decode.comm.health import DecodeFailure
from kimi_k3.decode.comm.interface import Site
from kimi_k3.decode.comm.local import Ended, LocalCommunicator, LocalGroup
from kimi_k3.decode.exchanges import exchanges_of
from kimi_k3.decode.packaged import packaged_manifest
from kimi_k3.decode.plan import Planner, RowCounts
from kimi_k3.engine.engine import Engine
from kimi_k3.engine.options import EngineConfig
from kimi_k3.engine.request import Request
from kimi_k3.engine.results import Unfinished
from kimi_k3.weights import ModelWeights
from tests.kimi_k3.decode.server import same_bits, tensors

TP = 2
LIMIT_S = 0.05
REQUESTS = (Request((1, 2, 3), 6), Request((9, 8, 7, 6, 5), 6))
LATER = 4
"""Where the tensors of layer 2 begin: layers 0 and 1 have two each."""
STEP = 3
"""Of the planned ones; the first tokens come from a prefill, which the stock path computes."""


@dataclass(frozen=True)
class Served:
    """What one rank's engine had released when it ended."""

    tokens: list[tuple[int, ...]]
    unfinished: list[Unfinished]
    failure: DecodeFailure | None
    again: DecodeFailure | None
    late_layers_kept: bool


def region() -> Region:
    return next(r for r in packaged_manifest().scope if r.id == "cpu-virtual-tp2")


def serve(
    weights: ModelWeights, faults: tuple[Fault, ...], requests: tuple[Request, ...] = REQUESTS
) -> list[Ended[Served]]:
    """Two ranks that generate until they are done or one is lost."""

    def one_rank(comm: LocalCommunicator) -> Served:
        options = EngineConfig(max_requests=2, pages=8, padding=RowCounts().padded_requests)
        model = RankModel.build(Setup(tiny(), options, TP), shard(weights, tiny(), TP, comm.rank))
        planner = Planner(region(), RowCounts(), draft=0)
        engine = Engine(tiny(), model.specialized(comm, planner), options)
        for request in requests:
            engine.add(request)
        released: list[list[int]] = [[] for _ in requests]
        failure = again = None
        kept = True
        while not engine.idle and failure is None:
            before = [t.clone() for t in tensors(model.caches)]
            try:
                events = engine.step()
            except DecodeFailure as error:
                failure = error
                after = [*tensors(model.caches)]
                kept = all(map(same_bits, after[LATER:], before[LATER:]))
            else:
                for event in events:
                    released[event.request].extend(event.tokens)
        try:
            engine.step()
        except DecodeFailure as error:
            again = error
        return Served([*map(tuple, released)], engine.unfinished(), failure, again, kept)

    exchanges = exchanges_of(tiny(), TP, 1, 64, torch.float32, limit_s=LIMIT_S)
    return LocalGroup(exchanges, faults).run(one_rank)


@pytest.fixture(scope="module")
def undisturbed(tiny_weights: ModelWeights) -> list[tuple[int, ...]]:
    first, second = serve(tiny_weights, ())
    assert first.value is not None
    assert second.value is not None
    assert first.value.tokens == second.value.tokens
    assert [len(tokens) for tokens in first.value.tokens] == [6, 6]
    return first.value.tokens


PLACES = [
    Place(STEP, Site.EMBED),
    Place(STEP, Site.O_PROJ, 0),
    Place(STEP, Site.O_PROJ, 4),
    Place(STEP, Site.LATENT, 2),
    Place(STEP, Site.SHARED, 1),
    Place(STEP, Site.LOGITS),
]
FAULTS: dict[str, Callable[[Place], Fault]] = {
    "killed": lambda place: Kill(1, place),
    "late": lambda place: Delay(1, place, 10 * LIMIT_S),
    "silent": lambda place: Drop(1, place),
    "one word short": lambda place: Drop(1, place, word=5),
}


@pytest.mark.parametrize("place", PLACES, ids=lambda p: f"{p.site}-{p.ordinal}")
@pytest.mark.parametrize("fault", FAULTS)
def test_living_ranks_raise_one_record_and_release_nothing_of_the_step(
    fault: str,
    place: Place,
    tiny_weights: ModelWeights,
    undisturbed: list[tuple[int, ...]],
) -> None:
    ended = serve(tiny_weights, (FAULTS[fault](place),))
    living = [one for one in ended if not one.killed]
    assert len(living) == (1 if fault == "killed" else 2)
    records = set()
    for one in living:
        served = one.value
        assert served is not None
        assert served.failure is not None
        records.add(served.failure.record)
        assert served.again is not None
        assert served.again.record == served.failure.record
        # One token from the prefill and one of each planned step before the one that failed.
        assert served.tokens == [tokens[:STEP] for tokens in undisturbed]
    # Within the limit and one more step; only a rank that is late itself ends when it wakes.
    for rank, one in enumerate(ended):
        if not one.killed:
            own = 10 * LIMIT_S if fault == "late" and rank == 1 else LIMIT_S
            assert one.time_s <= own + LIMIT_S
    assert len(records) == 1
    (record,) = records
    assert (record.step, record.site, record.slot) == (STEP, place.site, 1)
    assert record.seen < record.expected


def test_what_was_not_released_can_be_asked_of_a_rebuilt_group(
    tiny_weights: ModelWeights, undisturbed: list[tuple[int, ...]]
) -> None:
    """The prompt has grown by what came out; in FP32 the tokens go on as they would have."""
    ended = serve(tiny_weights, (Kill(1, Place(STEP, Site.O_PROJ, 4)),))
    served = ended[0].value
    assert served is not None
    rest = tuple(one.rest for one in served.unfinished)
    assert [r.prompt for r in rest] == [
        request.prompt + tokens[:STEP]
        for request, tokens in zip(REQUESTS, undisturbed, strict=True)
    ]
    again = serve(tiny_weights, (), rest)[0].value
    assert again is not None
    assert [len(tokens) for tokens in again.tokens] == [6 - STEP] * 2


def test_once_a_wait_has_failed_no_state_is_written(tiny_weights: ModelWeights) -> None:
    """Layers past the fault keep what they had: the ranks drain, with padding for requests."""
    ended = serve(tiny_weights, (Drop(1, Place(STEP, Site.O_PROJ, 1)),))
    for one in ended:
        assert one.value is not None
        assert one.value.failure is not None
        assert one.value.late_layers_kept


def test_a_rank_that_takes_another_path_is_told_from_the_others(
    tiny_weights: ModelWeights,
) -> None:
    ended = serve(tiny_weights, (FallBack(1, STEP),))
    failures = [one.failure or (one.value.failure if one.value else None) for one in ended]
    assert all(failure is not None for failure in failures)
    assert len({failure.record for failure in failures if failure is not None}) == 1
