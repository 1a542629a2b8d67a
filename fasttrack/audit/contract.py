# SPDX-License-Identifier: Apache-2.0
"""The contract of a kernel: what each parameter points to, and how it is launched.

Machine code does not say which memory another kernel is still writing. The contract does, and lies
beside the kernel: as YAML, or as `CONTRACTS` in the module that defines the kernel. `lint.py` holds
it against the kernel; nothing in it has a default that could hide a read.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Class(StrEnum):
    """What is known of the memory behind a parameter."""

    STATIC = "static"
    """Never written while kernels run: weights, tables. May be read at any time, in any way."""
    DYNAMIC = "dynamic"
    """Written by an earlier kernel of the step: activations, state."""
    METADATA = "metadata"
    """As dynamic, and its values choose what else is read: lengths, slots, block tables."""
    OUT = "out"
    """Written by this kernel."""
    MAILBOX = "mailbox"
    """Written by another GPU or kernel at any time; valid once its flag was acquired."""
    FLAG = "flag"
    """Says that a mailbox is full, or that this kernel has filled one."""
    SCALAR = "scalar"
    """A number, not a pointer."""


class Array(StrEnum):
    """Which of several flags, one behind the other, threads go by."""

    SAME = "same"
    """All threads of a block by the same one, at an index that machine code need not show."""
    OWN = "own"
    """Each thread by its own: it reads only what the flags announce that it, or a thread of its
    warp that it has met, has acquired; and sets a flag of what its warp has stored."""
    ALL = "all"
    """By all of them: a reader must have met every thread that acquires one."""


Announced = Literal["nothing"] | Annotated[tuple[str, ...], Field(min_length=1)]
"""What a flag announces."""


class Member(_Strict):
    """A member of a parameter that is a struct passed by value."""

    name: Annotated[str, Field(min_length=1)]
    """What findings call it."""
    offset: Annotated[int, Field(ge=0)]
    """Bytes from the start of the parameter."""
    size: Annotated[int, Field(gt=0)]
    """Bytes."""
    holds: Class
    """What it points to."""
    after: str | None = None
    """As of `Parameter.after`."""
    sentinel: bool = False
    """As of `Parameter.sentinel`."""
    rounds: Annotated[int, Field(ge=1)] = 1
    """As of `Parameter.rounds`."""
    pointees: Class | None = None
    """As of `Parameter.pointees`."""
    scope: Literal["gpu", "sys"] = "sys"
    """As of `Parameter.scope`."""
    array: Array | None = None
    """As of `Parameter.array`."""
    announces: Announced | None = None
    """As of `Parameter.announces`."""


class Parameter(_Strict):
    """One parameter, in the order of the kernel's signature."""

    name: Annotated[str, Field(min_length=1)]
    """What findings call it."""
    holds: Class | Literal["struct"]
    """What it points to, or `struct` with `fields`."""
    descriptor: bool = False
    """It is a TMA descriptor (128 bytes by value) of a tensor of that class."""
    after: str | None = None
    """For a mailbox: name of the flag that must be acquired before it is read."""
    sentinel: bool = False
    """For a mailbox without a flag: what is not there yet shows in the value that was read."""
    rounds: Annotated[int, Field(ge=1)] = 1
    """After how many waits or acquires it is read anew: a compiler that merges the reads of two
    rounds leaves fewer. A mailbox with a flag must say so."""
    pointees: Class | None = None
    """For a table of pointers: what those point to."""
    scope: Literal["gpu", "sys"] = "sys"
    """For a flag, which must say so: who must see it in order, this GPU alone or also others and
    the host."""
    array: Array | None = None
    """For a flag: that several lie there, and which of them threads go by; without it there is
    one."""
    announces: Announced | None = None
    """For a flag that this kernel sets: what it stores that is there once the flag is seen, by
    name; without it, all that it stores. `nothing` for one that it only sets back."""
    fields: tuple[Member, ...] = ()
    """For a struct: all members that the kernel uses, without overlap."""


class Barrier(_Strict):
    """A named barrier over a part of the block: who takes part is not in the machine code."""

    id: Annotated[int, Field(ge=0, le=15)]
    """Number of the barrier."""
    threads: Annotated[int, Field(gt=0)]
    """How many threads take part."""


class Neighbour(_Strict):
    """A kernel one or two launches away."""

    distance: Literal[-2, -1, 1, 2]
    """-1 is the launch before this one."""
    name: Annotated[str, Field(min_length=1)]
    """What findings call it."""
    reads: tuple[str, ...] = ()
    """Buffers that it reads, by the names that they have in this kernel."""
    writes: tuple[str, ...] = ()
    """Buffers that it writes, by the same names."""
    waits: bool
    """Whether all its threads wait for the kernel before it."""


class Contract(_Strict):
    """What holds for every launch of one kernel."""

    contract: Literal[1]
    """Version of the format."""
    kernel: Annotated[str, Field(min_length=1)]
    """The kernel's symbol; `*` stands for any characters."""
    block: tuple[int, int, int]
    """Threads in x, y and z."""
    cluster: Annotated[int, Field(ge=1)]
    """Blocks of a cluster; 1 without clusters."""
    pdl: bool
    """Whether it is launched while the kernel before it may still run."""
    parameters: tuple[Parameter, ...]
    """One for each parameter."""
    reads: tuple[str, ...] = ()
    """Buffers that it reads, by the parameters' or members' names; each pointer is in this list or
    the next."""
    writes: tuple[str, ...] = ()
    """Buffers that it writes."""
    barriers: tuple[Barrier, ...] = ()
    """Named barriers in use; barrier 0 over the whole block needs no entry."""
    neighbours: tuple[Neighbour, ...] = ()
    """Launches up to two away; empty when they are checked in a recorded graph instead."""
    early_trigger: str | None = None
    """Why stores or mutable reads after the trigger are safe; without it they are findings."""
