# SPDX-License-Identifier: Apache-2.0
"""Kernels that start while the launch before them still runs (programmatic dependent launch).

The next kernel's programs are then already on the device, its static weights on their way, when
what it depends on is ready. Rules, for a chain of launches a, b, c on one stream, c started early:

* c calls `wait_for_previous` before it reads what b writes, and before it writes anything;
* b, if it starts early itself, calls `let_next_start` only after its own wait, so that c never runs
  beside a; one that never starts early, as `route`, may call it first: a has ended before it began;
* what c reads before its wait is a weight, or was written by a or earlier, and is read from the L2
  cache (`.cg`): c's multiprocessor may hold older lines in its first-level cache.

That `.cg` reads before the wait find what was written rests on the writer, two launches earlier or
more, being complete, and on the L2 cache being coherent; not on the text of PTX, which speaks of
reads after the wait.

The option `launch_pdl` starts a kernel early; one without it never runs beside the one before it,
whatever that one calls. Under Triton's interpreter everything runs in order.
"""

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


@triton.jit
def wait_for_previous(COMPILED: tl.constexpr):
    """Returns when the launch before this one has ended and all it wrote can be read."""
    if COMPILED:
        gdc_wait()


@triton.jit
def let_next_start(COMPILED: tl.constexpr):
    """Lets the next launch start once all programs of this one have called it or ended."""
    if COMPILED:
        gdc_launch_dependents()
