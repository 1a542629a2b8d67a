# SPDX-License-Identifier: Apache-2.0
"""What a random kernel is made of."""

from dataclasses import dataclass
from random import Random

WAITERS = {
    "all": "true", "thread": "threadIdx.x == 0", "warp": "threadIdx.x < 32",
    "last-warp": "threadIdx.x >= 96", "elected": "threadIdx.x < 32 && elected()",
    "block": "blockIdx.x == 0", "none": "", "length": "n > 0",
}  # fmt: skip
BARRIERS = {
    "none": "", "sync": "__syncthreads();", "named": "NAMED(1, 128);", "mbarrier": "",
    "part": "if (threadIdx.x < 64) { NAMED(1, 64); } else { NAMED(2, 64); }",
}  # fmt: skip
READS = (
    *("plain",) * 9, "restrict", "restrict", "nc", "cp.async", "cp.async", "bulk", "bulk",
    "tensor", "tensor", "pipeline", "pipeline",
)  # fmt: skip
PLAIN = ("plain", "restrict", "nc")
TYPES = ("float", "float2", "float4")
INDICES = {
    "thread": "threadIdx.x", "block": "blockIdx.x * 128 + threadIdx.x",
    "scaled": "blockIdx.x * n + threadIdx.x",
}  # fmt: skip


@dataclass(frozen=True)
class Choices:
    """One kernel: what is drawn for each of its parts.

    Attributes:
        event: what is waited for: `pdl`, or a flag of a mailbox, by an `acquire` or, which is
            wrong, a `relaxed` read.
        waiter: who waits.
        barrier: what tells the others.
        read: how x is read: `plain`, `restrict`, `nc` (a load that is not coherent), `cp.async`,
            `bulk`, `tensor`, or `pipeline`: by one thread, stage by stage, for the others.
        place: where the wait is: `straight`, `first` (of a loop's iterations), `every`, or
            `nested`: in the first round of two loops, as a number says that is kept meanwhile.
        kind: type of an element.
        index: how elements are counted.
        prefetch: whether w is read before the wait.
        early: whether x is also read before it.
        lookup: whether a number from m chooses what is read of w, and when m is read.
        pointer: `direct`, `struct`, `select`, or `choice` of one of three.
        leave: where threads past the end leave: `never`, `before` or `after` the wait.
        trigger: `none`, `early`, `middle`: before the store, `end`: by each thread after its own,
            `part`: by one warp before the others store, or after a barrier behind the stores: by
            all threads that `met`, or by `one` of them.
        put: how the result is stored: `plain`, or by a `bulk` store that is waited for, or whose
            source alone is: `bulk-read`.
        roles: whether half of the block does nothing but read w.
        fenced: whether a fence for copy engines follows an acquire.
    """

    event: str
    waiter: str
    barrier: str
    read: str
    place: str
    kind: str
    index: str
    prefetch: bool
    early: bool
    lookup: str
    pointer: str
    leave: str
    trigger: str
    put: str
    roles: bool
    fenced: bool


def draw(random: Random) -> Choices:
    """Draws a kernel; most are honest in most of their parts."""
    event = random.choice(("pdl",) * 8 + ("acquire", "acquire", "relaxed"))
    read = random.choice(READS)
    waiter = random.choice(("all",) * 8 + ("thread", "warp", "elected", "last-warp") * 3
                           + ("block", "none", "length"))  # fmt: skip
    barrier = random.choice(("sync",) * 4 + ("named", "named", "mbarrier", "none", "part"))
    place = random.choice(("straight",) * 8 + ("first", "every") * 2 + ("nested",))
    leave = random.choice(("never",) * 9 + ("after",) * 3 + ("before",))
    if read in ("bulk", "tensor") or barrier == "mbarrier":
        place = "straight"
    if leave == "before" and (read in ("bulk", "tensor") or barrier not in ("none", "sync")):
        leave = "after"  # or threads would wait for ones that left
    roles = random.random() < 0.15
    if leave == "before" and roles and barrier != "none":
        leave = "after"
    put = random.choice(("plain",) * 9 + ("bulk", "bulk", "bulk-read"))
    trigger = random.choice(("none",) * 9 + ("met", "one") * 2 + ("early",) * 2
                            + ("end", "middle", "part"))  # fmt: skip
    if read == "pipeline" or leave != "never" or (roles and read not in PLAIN):
        put = "plain"
    if roles and leave != "never" and trigger in ("met", "one"):
        trigger = "none"  # or threads would wait for ones that left
    return Choices(
        event=event,
        waiter=waiter,
        barrier=barrier,
        read=read,
        place=place,
        kind="float4" if read == "cp.async" else random.choice(TYPES),
        index=random.choice(tuple(INDICES)),
        prefetch=random.random() < 0.5,
        early=random.random() < 0.04,
        lookup=random.choice(("none",) * 12 + ("after",) * 4 + ("before",)),
        pointer=random.choice(("direct",) * 4 + ("struct", "select", "choice")),
        leave=leave,
        trigger=trigger,
        put=put,
        roles=roles,
        fenced=random.random() < 0.7,
    )
