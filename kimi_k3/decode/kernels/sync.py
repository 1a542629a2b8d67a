# SPDX-License-Identifier: Apache-2.0
"""Memory order between threads, blocks and launches; PTX for it is in no other file of a kernel."""

from typing import Any

import cutlass
from cutlass import BFloat16, Int32, Int64, cute

from kimi_k3.decode.kernels.wait import PARITIES, SENTINEL

POLLS = 64
"""Polls between two looks at the `fail` word and the clock."""
WORDS, VALUES = 4, 8
"""32-bit words of a 16-byte load, and BF16 values."""


def put(pointer: cute.Pointer, value: Any, barrier: cute.Pointer, rank: Any) -> None:
    """Stores one FP32 in another block of the cluster, and counts its bytes at a barrier there.

    Args:
        pointer: where, as an address of this block's shared memory.
        value: FP32.
        barrier: the mbarrier, as an address of this block's.
        rank: the block that gets it, this one too.
    """
    there, counted = cute.arch.map_dsmem_ptr(pointer, rank), cute.arch.map_dsmem_ptr(barrier, rank)
    cute.arch.inline_ptx(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [{$r0}], {$r1}, [{$r2}];",
        write_only_types=[],
        read_only_args=[Int32(there.toint()), value, Int32(counted.toint())],
    )


class Wait:
    """One wait of a launch, by the operands of `kernels.wait`."""

    def __init__(
        self,
        counter: cute.Tensor,
        exchange: cute.Tensor,
        ordinal: Any,
        fail: cute.Tensor,
        health: cute.Tensor,
    ) -> None:
        self.step, self.exchange, self.ordinal = counter[0], exchange, Int64(ordinal)
        self.fail, self.health = fail, health
        self.parity = Int32((self.step * exchange[0] + self.ordinal) % PARITIES)
        self.deadline = cute.arch.globaltimer() + exchange[3]

    def take_bf16(self, words: cute.Pointer) -> Any:
        """Polls 16 bytes until all their words have come, arms them again, and returns them.

        Args:
            words: of this thread alone.

        Returns:
            Eight BF16 values, made of the polled registers; zeros when the wait was in vain.
        """
        place = (self.step, self.exchange[1], self.exchange[2], self.ordinal)
        taken = _take(words, self.fail.iterator, self.health.iterator, self.deadline, place)
        held = cute.make_rmem_tensor(WORDS, Int32)
        for at in range(WORDS):
            held[at] = taken[at]
        return cute.recast_tensor(held, BFloat16).load().reshape(((VALUES,),))


@cute.jit
def _take(
    words: cute.Pointer, fail: cute.Pointer, health: cute.Pointer, deadline: Int64, place: Any
) -> tuple[Any, ...]:
    a, b, c, d = _load(words)
    polls, failed = Int32(0), Int32(0)
    while (failed == 0) & ((a == SENTINEL) | (b == SENTINEL) | (c == SENTINEL) | (d == SENTINEL)):
        a, b, c, d = _load(words)
        polls += 1
        if polls % POLLS == 0:
            failed = cute.arch.load(fail, Int32, sem="relaxed", scope="sys")
            if failed == 0 and cute.arch.globaltimer() > deadline:
                seen = _count((a, b, c, d))
                _give_up(fail, health, place, seen)
                failed = Int32(1)
    none = Int32(0)
    came = (a != SENTINEL) & (b != SENTINEL) & (c != SENTINEL) & (d != SENTINEL)
    taken = tuple(cutlass.select_(came, word, none) for word in (a, b, c, d))
    _arm(words)
    return taken


def _load(words: cute.Pointer) -> list[Any]:
    return list(
        cute.arch.inline_ptx(
            "ld.relaxed.sys.global.v4.b32 {{$w0}, {$w1}, {$w2}, {$w3}}, [{$r0}];",
            write_only_types=[Int32] * WORDS,
            read_only_args=[Int64(words.toint())],
        )
    )


def _arm(words: cute.Pointer) -> None:
    cute.arch.inline_ptx(
        "st.relaxed.sys.global.v4.b32 [{$r0}], {{$r1}, {$r1}, {$r1}, {$r1}};",
        write_only_types=[],
        read_only_args=[Int64(words.toint()), Int32(SENTINEL)],
    )


def _count(words: tuple[Any, ...]) -> Any:
    total = Int64(0)
    for word in words:
        total = total + cutlass.select_(word != SENTINEL, Int64(1), Int64(0))
    return total


@cute.jit
def _give_up(fail: cute.Pointer, health: cute.Pointer, place: Any, seen: Int64) -> None:
    """Claims the health record for the first thread that comes, and sets `fail`."""
    step, rank, site, ordinal = place
    if cute.arch.atomic_cas(health, cmp=Int64(0), val=Int64(1), sem="relaxed", scope="sys") == 0:
        record = (rank, site, ordinal, step, Int64(0), Int64(WORDS), seen)
        for at in cutlass.range_constexpr(len(record)):
            cute.arch.store(health + (1 + at), record[at], sem="relaxed", scope="sys")
    cute.arch.store(fail, Int32(1), sem="release", scope="sys")
