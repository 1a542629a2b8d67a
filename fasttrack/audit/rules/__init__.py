# SPDX-License-Identifier: Apache-2.0
"""The rules, each one question asked of what a kernel does."""

from collections.abc import Callable, Iterable

from fasttrack.audit.finding import Finding
from fasttrack.audit.flow.facts import Facts
from fasttrack.audit.rules import bulk, dom, fence, nc, no_wait, read, reread, store, trig

RULES: tuple[Callable[[Facts], Iterable[Finding]], ...] = (
    read.check,
    nc.check,
    dom.check,
    no_wait.check,
    store.check,
    trig.check,
    fence.check,
    bulk.check,
    reread.check,
)
"""In the order of the documentation; `SKELETON` needs no facts and is in `judge`."""
