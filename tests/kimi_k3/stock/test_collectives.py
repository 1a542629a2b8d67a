# SPDX-License-Identifier: Apache-2.0
"""The stock path's collectives between two real processes."""

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from kimi_k3.stock.collectives import TorchDistributed

SIZE = 2


def own(rank: int) -> torch.Tensor:
    return torch.arange(6, dtype=torch.float32).reshape(2, 3) + 100 * rank


def one_process(rank: int, folder: str) -> None:
    dist.init_process_group("gloo", f"file://{folder}/meet", rank=rank, world_size=SIZE)
    comm = TorchDistributed()
    x = own(rank)
    results = {
        "place": (comm.rank, comm.size),
        "all_gather": comm.all_gather(x, dim=1),
        "reduce_scatter": comm.reduce_scatter(x, dim=0),
        "input": x.clone(),
        "all_reduce": comm.all_reduce(x),
        "in place": x,
    }
    try:
        comm.reduce_scatter(own(rank), dim=1)
    except ValueError as error:
        results["refused"] = str(error)
    torch.save(results, Path(folder) / f"{rank}.pt")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    folder = tmp_path_factory.mktemp("ranks")
    mp.spawn(one_process, (str(folder),), nprocs=SIZE)
    return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(SIZE)]


def test_every_process_knows_its_place(answers: list[dict[str, object]]) -> None:
    assert [answer["place"] for answer in answers] == [(0, SIZE), (1, SIZE)]


def test_a_sum_reaches_every_rank_in_the_memory_of_its_term(
    answers: list[dict[str, object]],
) -> None:
    for rank, answer in enumerate(answers):
        assert torch.equal(answer["all_reduce"], own(0) + own(1))
        assert torch.equal(answer["in place"], own(0) + own(1))
        assert torch.equal(answer["input"], own(rank))  # the other two leave theirs alone


def test_gathered_parts_stand_in_rank_order(answers: list[dict[str, object]]) -> None:
    for answer in answers:
        assert torch.equal(answer["all_gather"], torch.cat([own(0), own(1)], dim=1))


def test_each_rank_is_scattered_its_own_slice(answers: list[dict[str, object]]) -> None:
    for rank, answer in enumerate(answers):
        assert torch.equal(answer["reduce_scatter"], (own(0) + own(1))[rank : rank + 1])


def test_a_slice_that_does_not_divide_is_refused(answers: list[dict[str, object]]) -> None:
    assert all(answer["refused"] == "3 elements are no 2 equal slices" for answer in answers)
