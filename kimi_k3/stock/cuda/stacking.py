# SPDX-License-Identifier: Apache-2.0
"""Many small tensors as one inside a Triton kernel, so that one reduction serves all of them.

A reduction across warps costs two barriers however many values it carries.
"""

import triton
import triton.language as tl


@triton.jit
def stack(values):
    """A tuple of 2^p tensors of one shape [..] as one tensor [.., 2, .., 2] with p new axes.

    The lowest bit of a value's place is the first new axis.
    """
    stacked = values
    for _ in tl.static_range(5):
        if len(stacked) > 1:
            pairs = ()
            for i in tl.static_range(len(stacked) // 2):
                pairs += (tl.join(stacked[2 * i], stacked[2 * i + 1]),)
            stacked = pairs
    return stacked[0]


@triton.jit
def unstack(stacked):
    """The scalars of a tensor [2, .., 2], at most five axes, in the places `stack` gave them."""
    values = (stacked,)
    for _ in tl.static_range(5):
        if len(values[0].shape) > 0:
            halves = ()
            for i in tl.static_range(len(values)):
                low, high = tl.split(values[i])
                halves += (low, high)
            values = halves
    return values
