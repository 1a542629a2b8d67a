# SPDX-License-Identifier: Apache-2.0
"""What happens at an instruction, for the rules: accesses of memory, fences, waits, arrivals."""

from dataclasses import dataclass, replace
from enum import Enum

from fasttrack.audit.flow.state import Tokens
from fasttrack.audit.flow.threads import Number
from fasttrack.audit.flow.values import Bases
from fasttrack.audit.program import Instruction


class Does(Enum):
    """What an instruction does."""

    READ = "read"
    WRITE = "write"
    SHARED_WRITE = "shared write"
    """Puts data into shared memory without a copy engine."""
    BULK_SOURCE = "bulk source"
    """A copy engine reads shared memory."""
    WAIT = "wait"
    TRIGGER = "trigger"
    FENCE = "fence"
    ACQUIRE = "acquire"
    """Drops what was cached: reads after it see what was written before a flag that was seen."""
    ASYNC_FENCE = "async fence"
    COMMIT = "commit"
    """Bulk stores that a thread has started become a group."""
    GROUPS = "groups"
    """A wait for its groups, all but the newest: how many of those is in `address`."""
    ARRIVE = "arrive"
    """At an mbarrier: `address` is its own."""
    COPY = "copy"
    """A copy engine is started that will count its bytes at the mbarrier of that address."""
    MEET = "meet"
    """A barrier, or a look at an mbarrier: what others did before it is done."""
    EXIT = "exit"


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that threads do at an instruction.

    Attributes:
        does: what it is.
        instruction: where.
        tokens: what the threads have waited for.
        mask: the threads.
        bases: the memory that is accessed.
        address: its number, where there is one; of a look at an mbarrier, its own.
        strong: scope of a strong access, or of a fence; empty for weak ones.
        constant: a load through the cache that nothing keeps coherent.
        how: `load`, `store`, `copy`, `atomic`, `bulk`, or `counted` of stores for which an
            mbarrier counts bytes; of an acquire, `flag` if a flag was read;
            of an arrival, `bytes` if it also says how many bytes are to come.
        sure: whether it happens in every run that comes here.
        surely: those of the threads that do it whenever they come here.
        where: what the address is called, if it has one name and all threads of a block agree on
            it, or one thread alone goes there; else None.
    """

    does: Does
    instruction: Instruction
    tokens: Tokens
    mask: int
    bases: Bases = frozenset()
    address: Number = None
    strong: str = ""
    constant: bool = False
    how: str = ""
    sure: bool = True
    surely: int = -1
    where: tuple[int, int] | None = None

    def passed_by(self, passing: int) -> "Event":
        """The same of an instruction that some threads leave out."""
        return replace(self, sure=False, surely=self.mask & ~passing)
