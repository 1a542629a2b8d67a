# SPDX-License-Identifier: Apache-2.0
"""What a kernel deserves: some runs of it, under several orders and several numbers."""

from fasttrack.audit.contract import Contract
from fasttrack.audit.program import Kernel

from .lanes import Stuck
from .machine import run
from .memory import Event

RUNS = ((0, 3), (0, 0), (0, 6), (0, -1), (1, 3), (2, 6))
"""Seed of the order, and value of every number among the parameters."""


def truth(
    kernel: Kernel,
    contract: Contract,
    runs: tuple[tuple[int, int], ...] = RUNS,
    *,
    whole: bool = True,
) -> frozenset[Event]:
    """Everything that was out of order in any run; empty for an honest kernel.

    Args:
        kernel: as read from a cubin.
        contract: what its parameters are.
        runs: seeds and numbers, as `RUNS`.
        whole: whether to go on after a run in which something was.

    Raises:
        NotExecuted: there is an instruction that the interpreter does not know.
        Stuck: no run comes to its end.
    """
    found: set[Event] = set()
    ended = 0
    for seed, scalar in runs:
        try:
            found |= run(kernel, contract, seed, scalar=scalar)
            ended += 1
        except Stuck:
            continue
        if found and not whole:
            break
    if not ended:
        raise Stuck("no run comes to its end")
    return frozenset(found)
