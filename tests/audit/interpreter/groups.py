# SPDX-License-Identifier: Apache-2.0
"""Bulk stores: tiles, groups, and when those are over."""

import numpy as np

from fasttrack.audit.program import Instruction

from .access import check_source, check_write, uniform
from .lanes import Mask, NotExecuted
from .memory import DESCRIPTORS
from .state import State


def tensor_store(state: State, one: Instruction, mask: Mask) -> None:
    """UTMASTG and UTMAREDG: a tile out of shared memory, through a descriptor."""
    for thread in np.flatnonzero(state.lanes.first(mask)):
        address = uniform(state, one.operands[1], thread, wide=True)
        found = state.memory.descriptors.get(address)
        if found is None:
            raise NotExecuted(f"a descriptor at {address - DESCRIPTORS:#x}")
        check_write(state, one, thread, found, bulk=True)
        check_source(state, one, thread, found)


def close(state: State, one: Instruction, mask: Mask) -> None:
    """UTMACMDFLUSH: bulk stores so far are a group."""
    for thread in np.flatnonzero(mask):
        state.groups[thread].append([])


def wait(state: State, one: Instruction, mask: Mask) -> None:
    """DEPBAR.LE: all groups but the newest have at least read what they store."""
    if "LE" not in one.modifiers or one.text.split()[1] != "SB0,":
        return
    newest = int(one.text.rsplit(maxsplit=1)[1], 0)
    for thread in np.flatnonzero(mask):
        closed = state.groups[thread][:-1]
        left = closed[max(len(closed) - newest, 0) :] + state.groups[thread][-1:]
        state.unread[thread] = min(state.unread[thread], sum(map(len, left)))
        state.newest[int(thread)] = newest


def see(state: State, thread: int) -> None:
    """CCTL.IVALL right behind that: what they have written is there for the thread."""
    newest = state.newest.pop(thread, None)
    if newest is None:
        return
    groups = state.groups[thread]
    done = max(len(groups) - 1 - newest, 0)
    for group in groups[:done]:
        for one, name in group:
            state.accessed(thread, one, name)
    del groups[:done]
    if done:
        state.written(thread, "out", known=not any(groups))
