# SPDX-License-Identifier: Apache-2.0
"""One rank that plays its group: as many slots, equal terms, and the same protocol."""

import numpy as np
import pytest
import torch

from kimi_k3.decode.comm.communicator import Exchanges
from kimi_k3.decode.comm.health import DecodeFailure, HealthRecord
from kimi_k3.decode.comm.interface import Site
from kimi_k3.decode.comm.loopback import LoopbackCommunicator
from kimi_k3.decode.comm.mailbox import Mailbox, MailboxSpec
from kimi_k3.decode.comm.words import Sentinel
from tests.kimi_k3.decode.comm.builders import LIMIT_S, STEP, Program, exchanges, same_bits


@pytest.mark.parametrize("size", [1, 2, 8, 16])
def test_a_sum_is_the_rank_order_sum_of_equal_terms(size: int) -> None:
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(size))
    want = x.numpy()
    for _ in range(size - 1):
        want = (want + x.numpy()).astype(np.float32)
    comm = LoopbackCommunicator(Exchanges(size, 4, (MailboxSpec(Site.O_PROJ, 6, 1),)))
    comm.begin_step(4)
    got = comm.at(Site.O_PROJ).all_reduce(x)
    comm.end_step()
    assert got.numpy().tobytes() == want.tobytes()
    assert same_bits(comm.stock.all_reduce(x), got)


def test_gathers_and_slices_have_the_shapes_of_the_group_and_the_rank() -> None:
    x = torch.arange(24.0).view(4, 6)
    comm = LoopbackCommunicator(Exchanges(3, 4, (MailboxSpec(Site.STEP, 6, 2),)), rank=2)
    assert (comm.rank, comm.size) == (2, 3)
    comm.begin_step(4)
    assert torch.equal(comm.all_gather(x, 1), torch.cat([x] * 3, dim=1))
    assert torch.equal(comm.reduce_scatter(x, 1), 3 * x[:, 4:])
    comm.end_step()
    assert torch.equal(comm.stock.reduce_scatter(x, 1), 3 * x[:, 4:])
    assert torch.equal(comm.stock.all_gather(x, 0), torch.cat([x] * 3))


@pytest.mark.parametrize("sentinel", Sentinel)
def test_many_steps_leave_the_mailboxes_armed_and_equal_the_stock_side(
    sentinel: Sentinel,
) -> None:
    comm = LoopbackCommunicator(exchanges(sentinel))
    program = Program((8, 1, 0, 8, 3))
    got = iter(program.play(comm))
    for number in range(len(program.rows)):
        for e, x in zip(STEP, program.inputs(0, number, sentinel), strict=True):
            assert same_bits(next(got), e.of(comm.stock, x))


class Missing(LoopbackCommunicator):
    """Stores nothing."""

    def _publish(self, mailbox: Mailbox, ordinal: int, words: torch.Tensor) -> None:
        pass


def test_it_polls_and_gives_up_at_the_limit() -> None:
    comm = Missing(Exchanges(2, 4, (MailboxSpec(Site.LATENT, 3, 1),), LIMIT_S))
    comm.begin_step(2)
    assert not comm.at(Site.LATENT).all_reduce(torch.ones(2, 3)).any()
    assert comm.failed
    with pytest.raises(DecodeFailure) as failure:
        comm.end_step()
    assert failure.value.record == HealthRecord(0, Site.LATENT, 0, 1, 0, expected=6, seen=0)
    for use in (lambda: comm.begin_step(1), lambda: comm.stock.all_reduce(torch.ones(1))):
        with pytest.raises(DecodeFailure):
            use()


def test_a_rank_lies_in_its_group() -> None:
    with pytest.raises(ValueError, match="rank 3; want 0 to 2"):
        LoopbackCommunicator(exchanges(), rank=3)
