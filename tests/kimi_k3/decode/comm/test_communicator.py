# SPDX-License-Identifier: Apache-2.0
"""What a communicator over mailboxes refuses."""

from collections.abc import Callable

import pytest
import torch

from kimi_k3.decode.comm.communicator import Exchanges
from kimi_k3.decode.comm.interface import Site
from kimi_k3.decode.comm.local import LocalCommunicator, LocalGroup
from kimi_k3.decode.comm.mailbox import COUNTER_WRAP, MailboxSpec
from kimi_k3.ranks import Communicator
from tests.kimi_k3.decode.comm.builders import exchanges

X = torch.ones(4, 5)


def begun(comm: LocalCommunicator, rows: int = 4) -> LocalCommunicator:
    comm.begin_step(rows)
    return comm


def embed(comm: LocalCommunicator) -> Communicator:
    return begun(comm).at(Site.EMBED)


MISUSE: dict[str, tuple[Callable[[LocalCommunicator], object], str]] = {
    "an exchange outside a step": (lambda c: c.at(Site.EMBED).all_reduce(X), "no step has begun"),
    "an end without a begin": (LocalCommunicator.end_step, "no step has begun"),
    "two begins": (lambda c: begun(begun(c)), "before the last one has ended"),
    "no rows": (lambda c: begun(c, 0), "a step of 0 rows; want 1 to 8"),
    "too many rows": (lambda c: begun(c, 9), "a step of 9 rows; want 1 to 8"),
    "a site without a mailbox": (lambda c: begun(c).all_reduce(X), "no mailbox for site step"),
    "too wide a row": (
        lambda c: embed(c).all_reduce(torch.ones(4, 9)),
        "9 words per row at embed; the mailbox has 3",
    ),
    "no equal parts": (
        lambda c: embed(c).all_reduce(torch.ones(5, 1)),
        r"\[5, 1\] at embed has no equal parts for 4 rows",
    ),
    "nothing": (
        lambda c: embed(c).all_reduce(torch.ones(4, 0)),
        r"\[4, 0\] at embed has no equal parts for 4 rows",
    ),
    "one exchange too many": (
        lambda c: [at.all_reduce(X[:, :2]) for at in [embed(c)] * 2],
        "more than 1 exchanges at embed in a step",
    ),
    "exchanges left out": (
        lambda c: LocalCommunicator.end_step(begun(c)),
        "0 exchanges at embed in a step; want 1",
    ),
    "integers to add": (
        lambda c: embed(c).all_reduce(torch.ones(4, 1).long()),
        r"all_reduce of \[4, 1\] at embed: only floating-point numbers are added",
    ),
    "slices that are not equal": (
        lambda c: embed(c).reduce_scatter(X[:, :4], 1),
        r"reduce_scatter of \[4, 4\] at embed: 4 elements are no 3 equal slices",
    ),
}


@pytest.mark.parametrize("case", MISUSE)
def test_misuse_is_told_with_the_numbers_in_it(case: str) -> None:
    misuse, words = MISUSE[case]
    with pytest.raises(ValueError, match=words):
        LocalGroup(exchanges()).run(misuse)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Exchanges(0, 1, ()), "0 ranks, 1 rows"),
        (lambda: Exchanges(1, 0, ()), "1 ranks, 0 rows"),
        (lambda: Exchanges(1, 1, (), limit_s=0), "limit 0 s; want more than 0"),
        (lambda: Exchanges(1, 1, (), start=COUNTER_WRAP), "step counter 3221225472; want 0 to"),
        (
            lambda: Exchanges(1, 1, (MailboxSpec(Site.END, 1, 1),)),
            "mailboxes declared twice: end",
        ),
    ],
)
def test_a_group_that_can_not_work_is_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()
