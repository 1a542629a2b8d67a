# SPDX-License-Identifier: Apache-2.0
"""NO-WAIT: a kernel that is launched early and may end without having waited.

Then it may end while the kernel before it still runs, and the wait of the kernel after it, which
covers only this one, says nothing about what that kernel writes.
"""

from collections.abc import Iterator

from fasttrack.audit.finding import Finding, Verdict
from fasttrack.audit.flow.events import Does
from fasttrack.audit.flow.facts import Facts
from fasttrack.audit.flow.state import PDL

RULE = "NO-WAIT"
_FIX = "wait once, in all threads, before any of them can return"


def check(facts: Facts) -> Iterator[Finding]:
    """At most one finding: a block that can end before any of its threads has waited."""
    if not facts.contract.pdl:
        return
    if not any(True for _ in facts.those(Does.WAIT)):
        yield Finding(
            RULE, Verdict.VIOLATED, "no thread waits: there is no ACQBULK that can be reached",
            "every block waits before it ends", _FIX,
        )  # fmt: skip
        return
    without = [one for one in facts.those(Does.EXIT) if PDL not in one[1].tokens]
    lacking = 0
    for _, event in without:
        lacking |= event.mask
    if any(surely_waits(block, lacking) == 0 for block in facts.graph.context.threads.by_block):
        yield facts.finding(RULE, without[0], _WORDS)


def surely_waits(block: int, lacking: int) -> int:
    """Threads of a block that end only after they have waited."""
    return block & ~lacking


_WORDS = (
    "a block may end here before any of its threads has waited",
    "some thread of every block waits on every way to its end",
    _FIX,
)
