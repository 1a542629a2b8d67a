# SPDX-License-Identifier: Apache-2.0
"""Random kernels of waits, barriers, reads and branches, held against threads that are run.

The runner knows no states, masks or graphs: it walks every thread through the source of the kernel
and lets those that meet at a barrier share what any of them has waited for. What it finds wrong in
some launch, the audit must find wrong.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fasttrack.audit.finding import Verdict
from fasttrack.audit.judge import audit
from tests.audit.flow.listing import PROLOGUE, contract_of, kernel_of

Statement = tuple[Any, ...]
THREADS = (0, 1, 31, 32, 33, 64, 127)
"""Threads that are run: one at least of each kind that the conditions tell apart."""
CONDITIONS = {
    "P0": lambda thread, n: thread != 0,
    "P1": lambda thread, n: thread > 31,
    "P2": lambda thread, n: n > 0,
    "P5": lambda thread, n: thread & 32 != 0,
}
ODD_WARPS = "LOP3.LUT P5, RZ, R0, 0x20, RZ, 0xc0, !PT\n"


def _bodies(inner: st.SearchStrategy[list[Statement]]) -> st.SearchStrategy[list[Statement]]:
    condition = st.sampled_from(sorted(CONDITIONS))
    branch = st.tuples(st.just("if"), condition, st.booleans(), inner, inner)
    loop = st.tuples(st.just("loop"), inner)
    first = st.tuples(
        st.just("loop"), st.lists(st.tuples(st.just("first"), inner) | branch, max_size=3)
    )
    return st.lists(_simple() | branch | loop | first, max_size=5)


def _simple() -> st.SearchStrategy[Statement]:
    return st.sampled_from([("wait",), ("barrier",), ("read",), ("read",), ("exit",)])


PROGRAMS = st.recursive(st.lists(_simple(), max_size=4), _bodies, max_leaves=8)


@dataclass
class Writer:
    """Writes statements as a listing."""

    lines: list[str] = field(default_factory=list)
    labels: int = 0
    depth: int = 0

    def body(self, body: list[Statement]) -> None:
        for one in body:
            getattr(self, "_" + one[0])(*one[1:])

    def _label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def _wait(self) -> None:
        self.lines.append("ACQBULK")

    def _barrier(self) -> None:
        self.lines.append("BAR.SYNC.DEFER_BLOCKING 0x0")

    def _read(self) -> None:
        self.lines.append("LDG.E R12, desc[UR4][R4.64]")

    def _exit(self) -> None:
        self.lines.append("EXIT")

    def _if(self, condition: str, negated: bool, yes: list[Statement], no: list[Statement]) -> None:
        other, end = self._label(), self._label()
        self.lines.append(f"@{'' if negated else '!'}{condition} BRA {other}")
        self.body(yes)
        self.lines.extend((f"BRA {end}", f"{other}:"))
        self.body(no)
        self.lines.append(f"{end}:")

    def _loop(self, body: list[Statement]) -> None:
        counter, head = f"R{20 + self.depth}", self._label()
        self.depth += 1
        self.lines.extend((f"MOV {counter}, RZ", f"{head}:"))
        self.body(body)
        self.depth -= 1
        self.lines.append(f"IADD3 {counter}, {counter}, 0x1, RZ")
        self.lines.append(f"ISETP.GE.AND P3, PT, {counter}, 0x2, PT")
        self.lines.append(f"@!P3 BRA {head}")

    def _first(self, body: list[Statement]) -> None:
        after = self._label()
        self.lines.append(f"ISETP.NE.AND P3, PT, R{20 + self.depth - 1}, RZ, PT")
        self.lines.append(f"@P3 BRA {after}")
        self.body(body)
        self.lines.append(f"{after}:")


class Ended(Exception):
    """A thread returned."""


def _walk(body: list[Statement], thread: int, n: int, rounds: tuple[int, ...]) -> Iterator[str]:
    for kind, *rest in body:
        if kind in ("wait", "barrier", "read"):
            yield kind
        elif kind == "exit":
            raise Ended
        elif kind == "if":
            condition, negated, yes, no = rest
            taken = CONDITIONS[condition](thread, n) is not negated
            yield from _walk(yes if taken else no, thread, n, rounds)
        elif kind == "loop":
            for at in range(2):
                yield from _walk(rest[0], thread, n, (*rounds, at))
        elif rounds[-1] == 0:
            yield from _walk(rest[0], thread, n, rounds)


def _steps(body: list[Statement], thread: int, n: int) -> Iterator[str]:
    try:
        yield from _walk(body, thread, n, ())
    except Ended:
        return


def is_wrong(body: list[Statement], n: int) -> bool:
    """Whether some thread reads too early, or no thread has waited when the last one ends."""
    running = {thread: _steps(body, thread, n) for thread in THREADS}
    waited = dict.fromkeys(THREADS, False)
    while running:
        meeting = []
        for thread, steps in list(running.items()):
            kind = next((one for one in steps if _acts(one, thread, waited)), None)
            if kind == "read":
                return True
            if kind is None:
                del running[thread]
            else:
                meeting.append(thread)
        if any(waited[thread] for thread in meeting):
            waited.update(dict.fromkeys(meeting, True))
    return not any(waited.values())


def _acts(kind: str, thread: int, waited: dict[int, bool]) -> bool:
    """Whether a thread stops at a step: at a barrier, or because it reads too early."""
    if kind == "wait":
        waited[thread] = True
    return kind == "barrier" or (kind == "read" and not waited[thread])


def _loops(body: list[Statement], inside: bool = False) -> bool:
    """Whether `first` stands in loops only."""
    for kind, *rest in body:
        if kind == "first" and not inside:
            return False
        for part in rest:
            if isinstance(part, list) and not _loops(part, inside or kind == "loop"):
                return False
    return True


@settings(max_examples=400, deadline=None)
@given(PROGRAMS)
def test_what_some_launch_does_wrong_is_violated(body: list[Statement]) -> None:
    writer = Writer()
    writer.body(body)
    listing = PROLOGUE + ODD_WARPS + "\n".join([*writer.lines, "NOP", "EXIT"])
    wrong = any(is_wrong(body, n) for n in (0, 1))
    verdict = audit(kernel_of(listing), contract_of(), None).verdict
    if wrong:
        assert verdict is Verdict.VIOLATED
