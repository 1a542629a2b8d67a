# SPDX-License-Identifier: Apache-2.0
"""What a kernel is given that waits for a row of a mailbox, see `decode.comm.mailbox`: `AT_ONCE`.

Exchange e = step x per step + ordinal has the parity e mod 2. A wait ends when no loaded word is
the sentinel, when the rank's `fail` word is set, or at its deadline; then the record of
`decode.comm.health` is claimed, `fail` is set, and zeros are used.
"""

from collections.abc import Iterator

from kimi_k3.decode.kernels.shapes import Operand, Role

PARITIES = 2
WORD_BYTES = 4
SENTINEL = -1
"""`decode.comm.words.Sentinel.ALL_ONES`, the word that says "not yet written"."""
EXCHANGE = ("per_step", "rank", "site", "limit_ns")
"""What the words of the operand `exchange` are."""
HEALTH_WORDS = 8


def wait_operands(rows: int, hidden: int) -> Iterator[Operand]:
    """The operands of a wait, in order.

    Args:
        rows: of the mailbox.
        hidden: BF16 values of a row.
    """
    words = hidden * 2 // WORD_BYTES
    yield Operand("mailbox", "int32", (PARITIES, rows, words), Role.MAILBOX)
    yield Operand("counter", "int64", (3,), Role.IN)
    yield Operand("exchange", "int64", (len(EXCHANGE),), Role.STATIC)
    yield Operand("ordinal", "int32", (), Role.SCALAR, low=0, high=1 << 16)
    yield Operand("fail", "int32", (1,), Role.MAILBOX)
    yield Operand("health", "int64", (HEALTH_WORDS,), Role.MAILBOX)
