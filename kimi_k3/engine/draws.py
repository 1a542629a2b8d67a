# SPDX-License-Identifier: Apache-2.0
"""Random numbers by counter: a draw depends on the seed and on what it decides, on nothing else.

No generator has a state that batching, the order of requests, an abort or a restart could move: the
draw for the token at position p of a request with seed s is the same wherever it is made.
"""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from kimi_k3.random_init import LOW_32, philox_block

Floats = NDArray[np.float64]

MAX_SEED = 2**64 - 1


class Stream(IntEnum):
    """What a draw decides; draws of different streams are independent."""

    TOKEN = 0
    """Which token stands at a position."""
    ACCEPT = 1
    """Whether a token drafted with a probability stands."""
    DRAFT = 2
    """What a sampling drafter proposes."""
    SYNTHETIC_ACCEPT = 3
    """Whether a synthetic draft token counts as accepted."""
    SYNTHETIC_DRAFT = 4
    """What the synthetic drafter proposes."""


def uniforms(seed: int, stream: Stream, position: int, count: int, lane: int = 0) -> Floats:
    """Draws for `count` positions from `position` on.

    48 bits each: times a positive total they stay below it in float64.

    Args:
        seed: 0 to `MAX_SEED`.
        stream: what the draws decide.
        position: of the first one; positions count a request's tokens, the prompt's included.
        count: how many.
        lane: tells apart what shares seed and position; its lower 32 bits count.

    Returns:
        [count] numbers in (0, 1).
    """
    at = np.arange(position, position + count, dtype=np.uint64)
    same = np.ones_like(at)
    counter = np.stack(
        [at & LOW_32, at >> np.uint64(32), same * np.uint64(stream), same * np.uint64(lane % 2**32)]
    )
    words = philox_block(seed, counter)  # [4, count]
    bits = (words[0] << np.uint64(16)) + (words[1] >> np.uint64(16))
    return np.asarray((bits.astype(np.float64) + 0.5) / 2**48)
