# SPDX-License-Identifier: Apache-2.0
"""Ranks in one process: what collectives compute, and that every disagreement ends the group."""

import random
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from kimi_k3.ranks import Communicator, RankError, SingleRank, run_ranks

Function = Callable[[Communicator], object]


def terms(size: int, *shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    """One tensor per rank over many binades, so that another order of a sum gives other bits."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(size, *shape, generator=g, dtype=torch.float64)
    return (x * torch.exp2(torch.randint(-9, 10, x.shape, generator=g).double())).to(dtype)


def bits(x: Tensor) -> bytes:
    return x.contiguous().view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("size", [1, 2, 3, 8, 16])
def test_a_sum_adds_in_rank_order_and_every_rank_holds_its_bits(size: int) -> None:
    x = terms(size, 64, 3)
    want = x[0].numpy()
    for term in x[1:].numpy():
        want = (want + term).astype(np.float32)
    for got in run_ranks(size, lambda comm: comm.all_reduce(x[comm.rank])):
        assert bits(got) == want.tobytes()
    if size > 2:
        backwards = run_ranks(size, lambda comm: comm.all_reduce(x[size - 1 - comm.rank]))
        assert bits(backwards[0]) != want.tobytes()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_sum_of_narrow_numbers_is_in_fp32_and_rounded_once(dtype: torch.dtype) -> None:
    x = terms(16, 1000, dtype=dtype)
    wide = x[0].float()
    for term in x[1:]:
        wide = wide + term.float()
    (got, *_) = run_ranks(16, lambda comm: comm.all_reduce(x[comm.rank]))
    assert torch.equal(got, wide.to(dtype))
    each_rounded = x[0]
    for term in x[1:]:
        each_rounded = each_rounded + term
    assert not torch.equal(got, each_rounded)


def test_a_sum_in_float64_stays_in_float64() -> None:
    x = torch.tensor([1.0, 2.0**-50], dtype=torch.float64)
    for got in run_ranks(2, lambda comm: comm.all_reduce(x[comm.rank])):
        assert float(got) == 1.0 + 2.0**-50


@given(
    size=st.integers(1, 5),
    rows=st.integers(1, 3),
    width=st.integers(1, 4),
    dim=st.integers(0, 1),
    seed=st.integers(0, 9),
)
def test_scatter_then_gather_is_reduce(
    size: int, rows: int, width: int, dim: int, seed: int
) -> None:
    shape = [rows, width]
    shape[dim] *= size
    x = terms(size, *shape, seed=seed)

    def both(comm: Communicator) -> tuple[Tensor, Tensor, Tensor]:
        part = comm.reduce_scatter(x[comm.rank], dim)
        return part, comm.all_gather(part, dim), comm.all_reduce(x[comm.rank])

    for rank, (part, gathered, reduced) in enumerate(run_ranks(size, both)):
        assert bits(gathered) == bits(reduced)
        first = rank * part.shape[dim]
        assert torch.equal(part, reduced.narrow(dim, first, part.shape[dim]))
        assert part.shape[dim] * size == shape[dim]


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_a_gather_concatenates_in_rank_order_whatever_the_dtype(dim: int) -> None:
    x = torch.arange(3 * 2 * 4 * 2).view(3, 2, 4, 2)
    for dtype in (torch.int32, torch.uint8, torch.bool, torch.bfloat16):
        values = x.to(dtype)
        want = np.concatenate(list(x.numpy()), axis=dim)
        for got in run_ranks(3, lambda comm, v=values: comm.all_gather(v[comm.rank], dim)):  # type: ignore[misc]
            assert torch.equal(got, torch.from_numpy(want).to(dtype))


def test_a_group_of_one_is_the_single_rank() -> None:
    x = terms(1, 4, 6)[0]

    def all_three(comm: Communicator) -> list[bytes]:
        return [
            bits(y) for y in (comm.all_reduce(x), comm.reduce_scatter(x, 1), comm.all_gather(x, 0))
        ]

    assert run_ranks(1, all_three) == [all_three(SingleRank())]


def test_what_a_rank_writes_into_a_result_no_other_rank_sees() -> None:
    mine = torch.zeros(4)

    def write(comm: Communicator) -> list[Tensor]:
        results = [
            comm.all_reduce(mine),
            comm.all_gather(mine, 0),
            comm.reduce_scatter(mine, 0),
        ]
        for y in results:
            y.add_(1 + comm.rank)
        comm.all_reduce(mine)
        return results

    for rank, results in enumerate(run_ranks(2, write)):
        assert all(bool((y == 1 + rank).all()) for y in results)
    assert bool((mine == 0).all())


def test_nan_infinity_and_the_zeros_arrive_as_ieee_says() -> None:
    x = torch.tensor([[-0.0, -0.0, torch.inf, torch.nan], [-0.0, 0.0, -torch.inf, 1.0]])
    for got in run_ranks(2, lambda comm: comm.all_reduce(x[comm.rank])):
        assert got[:2].signbit().tolist() == [True, False]
        assert got[2:].isnan().all()


def test_the_bits_do_not_depend_on_how_long_ranks_take() -> None:
    x = terms(4, 50)

    def chained(delays: random.Random | None) -> Function:
        def rank(comm: Communicator) -> bytes:
            y = x[comm.rank]
            for _ in range(20):
                if delays:
                    time.sleep(delays.random() * 2e-3)
                y = comm.all_reduce(y) * 0.3 + x[comm.rank]
            return bits(comm.all_gather(y, 0))

        return rank

    want = run_ranks(4, chained(None))
    assert len(set(want)) == 1
    for seed in range(3):
        assert run_ranks(4, chained(random.Random(seed))) == want


def test_many_collectives_of_many_groups_leave_no_thread_behind() -> None:
    before = threading.active_count()
    one = torch.ones(1)

    def count(comm: Communicator) -> float:
        total = torch.zeros(1)
        for _ in range(200):
            total = total + comm.all_reduce(one)
        return float(total)

    for _ in range(5):
        assert run_ranks(8, count) == [200.0 * 8] * 8
    assert threading.active_count() == before


def test_a_rank_may_run_a_group_of_its_own() -> None:
    def outer(comm: Communicator) -> tuple[list[float], float]:
        x = torch.tensor([1.0 + comm.rank])
        inner = run_ranks(2, lambda own: float(own.all_reduce(x * (1 + own.rank))))
        return inner, float(comm.all_reduce(x))

    assert run_ranks(3, outer) == [([3.0 * (1 + r)] * 2, 6.0) for r in range(3)]


X = torch.zeros(2, 6)


def missing(key: object) -> object:
    raise KeyError(key)


DISAGREEMENTS: dict[str, tuple[Function, str]] = {
    "another collective": (
        lambda c: c.all_gather(X, 1) if c.rank == 2 else c.all_reduce(X),
        "rank 2 called all_gather(float32 [2, 6], dim 1); "
        "ranks 0, 1 called all_reduce(float32 [2, 6])",
    ),
    "another shape": (
        lambda c: c.all_reduce(X[: 1 + (c.rank != 1)]),
        "rank 1 called all_reduce(float32 [1, 6]); ranks 0, 2 called all_reduce(float32 [2, 6])",
    ),
    "another dtype": (
        lambda c: c.all_reduce(X.double() if c.rank == 0 else X),
        "rank 0 called all_reduce(float64 [2, 6]); ranks 1, 2 called all_reduce(float32 [2, 6])",
    ),
    "another dimension": (
        lambda c: c.reduce_scatter(torch.zeros(6, 6), c.rank // 2),
        "rank 2 called reduce_scatter(float32 [6, 6], dim 1); "
        "ranks 0, 1 called reduce_scatter(float32 [6, 6], dim 0)",
    ),
    "an early return": (
        lambda c: None if c.rank == 1 else c.all_reduce(X),
        "rank 1 returned; ranks 0, 2 called all_reduce(float32 [2, 6])",
    ),
    "one collective too many": (
        lambda c: [c.all_reduce(X) for _ in range(2 + (c.rank == 0))],
        "at collective 2: rank 0 called all_reduce(float32 [2, 6]); ranks 1, 2 returned",
    ),
    "an exception": (
        lambda c: c.all_reduce(X if c.rank < 2 else X[:, 7]),
        "rank 2 raised IndexError: ",
    ),
    "an exception of all with different words": (
        lambda c: [][c.rank] if c.rank else missing(c.rank),
        "rank 0 raised KeyError: 0; ranks 1, 2 raised IndexError: list index out of range",
    ),
    "an exit": (
        lambda c: c.all_reduce(X) if c.rank else exit(3),
        "rank 0 raised SystemExit: 3; ranks 1, 2 called",
    ),
    "slices that are not equal": (
        lambda c: c.reduce_scatter(X, 0),
        "all ranks called reduce_scatter(float32 [2, 6], dim 0): 2 elements are no 3 equal slices",
    ),
    "a dimension that the tensor has not": (
        lambda c: c.all_gather(X, 2),
        "all ranks called all_gather(float32 [2, 6], dim 2): the tensor has 2 dimensions",
    ),
    "a negative dimension": (lambda c: c.all_gather(X, -1), "the tensor has 2 dimensions"),
    "integers to add": (
        lambda c: c.all_reduce(X.long()),
        "all ranks called all_reduce(int64 [2, 6]): only floating-point numbers are added",
    ),
}


@pytest.mark.parametrize("case", DISAGREEMENTS)
def test_a_disagreement_ends_every_rank_with_the_same_words(case: str) -> None:
    function, words = DISAGREEMENTS[case]
    seen: dict[int, str] = {}

    def told(comm: Communicator) -> object:
        try:
            return function(comm)
        except RankError as error:
            seen[comm.rank] = str(error)
            raise

    before, started = threading.active_count(), time.monotonic()
    with pytest.raises(RankError) as failure:
        run_ranks(3, told, turn_limit_s=8)
    assert words in str(failure.value)
    assert str(failure.value).startswith("at collective ")
    assert time.monotonic() - started < 8  # nobody was waited for until the limit
    assert threading.active_count() == before
    waiting = {r for r in range(3) if r in seen}
    assert all(text == str(failure.value) for text in seen.values())
    ended = {"an early return": {1}, "one collective too many": {1, 2}, "an exception": {2}}
    ended |= {"an exit": {0}, "an exception of all with different words": {0, 1, 2}}
    assert waiting == {0, 1, 2} - ended.get(case, set())


def test_the_cause_of_the_error_is_what_the_rank_raised() -> None:
    with pytest.raises(RankError) as failure:
        run_ranks(2, lambda comm: comm.all_reduce(X) if comm.rank else missing("weights"))
    assert isinstance(failure.value.__cause__, KeyError)


def test_what_all_ranks_raise_alike_is_raised_as_it_is() -> None:
    with pytest.raises(KeyError, match="weights"):
        run_ranks(3, lambda comm: (comm.all_reduce(X), missing("weights")))


def test_a_rank_that_goes_on_after_the_error_is_refused_again_and_again() -> None:
    refused = []

    def stubborn(comm: Communicator) -> None:
        if comm.rank == 1:
            return
        for _ in range(3):
            with pytest.raises(RankError, match="rank 1 returned"):
                comm.all_reduce(X)
            refused.append(comm.rank)

    with pytest.raises(RankError, match="rank 1 returned"):
        run_ranks(2, stubborn)
    assert refused == [0, 0, 0]


def test_a_rank_that_comes_to_no_collective_ends_the_others_in_bounded_time() -> None:
    release, ended = threading.Event(), threading.Event()

    def stuck(comm: Communicator) -> None:
        comm.all_reduce(X)
        if comm.rank == 1:
            release.wait()
            with pytest.raises(RankError, match="rank 1 came to no collective in time"):
                comm.all_reduce(X)
            ended.set()
        else:
            comm.all_reduce(X)

    started = time.monotonic()
    with pytest.raises(RankError) as failure:
        run_ranks(3, stuck, turn_limit_s=0.2)
    assert 0.2 <= time.monotonic() - started < 5
    assert "at collective 1: rank 1 came to no collective in time; ranks 0, 2 called" in str(
        failure.value
    )
    release.set()
    assert ended.wait(5)


def test_a_group_after_a_failed_group_works() -> None:
    for _ in range(3):
        with pytest.raises(RankError):
            run_ranks(4, lambda comm: comm.all_reduce(X) if comm.rank else None)
        assert [float(y.sum()) for y in run_ranks(4, lambda c: c.all_reduce(X + 1))] == [48.0] * 4


def test_an_inner_group_that_fails_fails_the_outer_group() -> None:
    def outer(comm: Communicator) -> Tensor:
        if comm.rank == 1:
            run_ranks(2, lambda own: own.all_reduce(X) if own.rank else None)
        return comm.all_reduce(X)

    with pytest.raises(RankError, match=r"rank 1 raised RankError: at collective 0: rank 0 ret"):
        run_ranks(2, outer)


def test_a_communicator_serves_only_its_own_thread_and_only_while_its_group_runs() -> None:
    with pytest.raises(RankError, match="of rank 0 was used in another thread"):
        run_ranks(2, lambda comm: run_ranks(2, lambda _: comm.all_reduce(X)))
    kept, _ = run_ranks(2, lambda comm: comm)
    with pytest.raises(RankError, match="another thread"):
        kept.all_reduce(X)


def test_a_rank_alone_runs_in_the_thread_of_its_caller() -> None:
    assert run_ranks(1, lambda _: threading.current_thread()) == [threading.current_thread()]


def test_an_interrupt_of_the_caller_ends_the_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def rank(comm: Communicator) -> None:
        try:
            comm.all_reduce(X)
        except RankError as error:
            told.append(str(error))

    def interrupted(*_: object, **__: object) -> Tensor:
        raise KeyboardInterrupt

    before = threading.active_count()
    monkeypatch.setattr("kimi_k3.ranks.rank_order_sum", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_ranks(3, rank)
    assert told == ["stopped by KeyboardInterrupt"] * 3
    assert threading.active_count() == before


def test_a_group_has_at_least_one_rank() -> None:
    with pytest.raises(ValueError, match="0 ranks"):
        run_ranks(0, lambda comm: comm.rank)


def test_ranks_know_who_they_are_and_results_come_in_rank_order() -> None:
    assert run_ranks(5, lambda comm: (comm.rank, comm.size)) == [(r, 5) for r in range(5)]
