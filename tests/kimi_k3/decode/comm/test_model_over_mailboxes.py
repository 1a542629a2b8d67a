# SPDX-License-Identifier: Apache-2.0
"""The reference model with the stock rounding: mailboxes give the bits of plain collectives."""

import pytest
import torch
from torch import Tensor

from kimi_k3.assembly import shard
from kimi_k3.config import tiny
from kimi_k3.decode.comm.communicator import Exchanges
from kimi_k3.decode.comm.interface import Site
from kimi_k3.decode.comm.local import LocalCommunicator, LocalGroup, Skew
from kimi_k3.decode.comm.mailbox import COUNTER_WRAP, MailboxSpec
from kimi_k3.decode.comm.words import words_for
from kimi_k3.ranks import Communicator, run_ranks
from kimi_k3.reference.context import Context
from kimi_k3.reference.model import Model
from kimi_k3.reference.state import CacheShape, KdaState, allocate
from kimi_k3.rounding import stock
from kimi_k3.weights import ModelWeights

CONFIG = tiny()
TP = 2
STEPS = 6
SHAPE = CacheShape(slots=2, pages=2, page_size=4, draft=0)


def agreed(start: int) -> Exchanges:
    layers = range(CONFIG.num_layers)
    dense = sum(map(CONFIG.is_dense, layers))
    plain = 2 + CONFIG.num_layers + dense + 2 * (CONFIG.num_layers - dense)  # both ends included
    widest = max(CONFIG.hidden_size, CONFIG.vocab_size // TP)
    merged = CONFIG.mla_num_heads * CONFIG.kv_row
    mailboxes = (
        MailboxSpec(Site.STEP, words_for(widest, torch.float32), plain),
        MailboxSpec(Site.DCP, words_for(merged, torch.float32), 3 * len(CONFIG.mla_layers)),
    )
    return Exchanges(TP, 2, mailboxes, start=start)


def serve(
    weights: ModelWeights, plain: Communicator, planned: LocalCommunicator | None, taken: str
) -> list[Tensor]:
    """Logits of each step and the caches at the end; steps marked `p` go over mailboxes."""
    own = shard(weights, CONFIG, TP, plain.rank)
    models = {"s": Model(Context(CONFIG, stock(), plain, plain), own)}
    if planned is not None:
        models["p"] = Model(Context(CONFIG, stock(), planned, planned.at(Site.DCP)), own)
    caches = allocate(CONFIG, own, stock(), SHAPE)
    one = torch.ones(1, dtype=torch.long)
    logits = []
    for number, kind in enumerate(taken):
        over = planned if kind == "p" else None
        if over:
            over.begin_step(1)
        output = models[kind].step(
            torch.tensor([7 * number + 3]),
            1,
            caches,
            slots=one[None],
            accepted=one,
            block_table=torch.arange(2)[None],
            lengths=one * (number + 1),
        )
        if over:
            over.end_step()
        logits += [output.logits, output.hidden]
    for layer in caches.layers:
        logits += [layer.recurrent, layer.conv] if isinstance(layer, KdaState) else [layer.pages]
    return logits


@pytest.mark.parametrize(
    ("taken", "start"), [("p" * STEPS, 0), ("spspps", COUNTER_WRAP - 2), ("ppsspp", 0)]
)
def test_planned_and_fallback_steps_in_any_order_give_the_bits_of_an_all_stock_run(
    tiny_weights: ModelWeights, taken: str, start: int
) -> None:
    want = run_ranks(TP, lambda rank: serve(tiny_weights, rank, None, "s" * STEPS))
    group = LocalGroup(agreed(start), skew=Skew(11))
    ended = group.run(lambda comm: serve(tiny_weights, comm.stock, comm, taken))
    for mine, plain in zip(ended, want, strict=True):
        assert mine.value is not None
        assert len(mine.value) == len(plain)
        for a, b in zip(mine.value, plain, strict=True):
            assert torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))
    steps = [memory.counter.step for memory in group.memories]
    assert steps == [(start + taken.count("p")) % COUNTER_WRAP] * TP
