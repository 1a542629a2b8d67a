# SPDX-License-Identifier: Apache-2.0
"""The control-flow graph: runs of instructions that are entered at the top and left at the end."""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from fasttrack.audit.flow.operands import is_predicate
from fasttrack.audit.program import Immediate, Instruction, Kernel, Target

BYTES = 16
"""Size of an instruction."""
BRANCHES = frozenset({"BRA", "JMP"})
INDIRECT = frozenset({"BRX", "BRXU", "JMX", "JMXU"})
ENDS = frozenset({"EXIT", "KILL"})
_ALONE = frozenset({"BAR", "UCGABAR_ARV", "UCGABAR_WAIT"})
"""Instructions that make a run of their own, so that a guard may go around them."""
_MEETINGS = _ALONE | {"WARPSYNC", "SYNCS"}
_WAITS = frozenset({"ACQBULK", "CCTL"})
_LAST = BRANCHES | INDIRECT | ENDS | _ALONE | {"RET", "CALL", "BPT", "WARPSYNC"}
"""Instructions that end a run."""


@dataclass(frozen=True)
class Blocks:
    """The runs of a kernel, and where each may go.

    Attributes:
        kernel: whose they are.
        starts: addresses of their first instructions, in order.
    """

    kernel: Kernel
    starts: tuple[int, ...]

    def of(self, address: int) -> int:
        """Where the run begins that holds an address."""
        return self.starts[bisect_right(self.starts, address) - 1]

    @cached_property
    def runs(self) -> dict[int, tuple[Instruction, ...]]:
        """Instructions by the address of the run."""
        instructions = self.kernel.instructions
        ends = [*self.starts[1:], len(instructions) * BYTES]
        return {
            start: instructions[start // BYTES : end // BYTES]
            for start, end in zip(self.starts, ends, strict=True)
        }

    @cached_property
    def next(self) -> dict[int, tuple[int, ...]]:
        """Runs that may follow each; calls are taken to return, and returns to end."""
        return {start: self._after(run[-1]) for start, run in self.runs.items()}

    def _after(self, last: Instruction) -> tuple[int, ...]:
        found = [one for one in targets(self.kernel, last) if one in self.runs]
        if may_fall_through(last) and last.address + BYTES in self.runs:
            found.append(last.address + BYTES)
        return tuple(dict.fromkeys(found))

    @cached_property
    def loops(self) -> tuple[frozenset[int], ...]:
        """Natural loops, as the runs that they hold; smaller ones first.

        Of loops that begin at the same run, the inner ones only if nothing but one branch leaves
        them: else they may be rounds of the outer one that are cut short.
        """
        inner = {loop for loop in self._rounds.values() if self.has_one_way_out(loop)}
        return tuple(sorted(inner | set(self.heads.values()), key=len))

    @cached_property
    def heads(self) -> dict[int, frozenset[int]]:
        """Natural loops by the run at which they begin."""
        bodies: dict[int, frozenset[int]] = {}
        for (head, _), body in self._rounds.items():
            bodies[head] = bodies.get(head, frozenset()) | body
        return bodies

    @cached_property
    def _rounds(self) -> dict[tuple[int, int], frozenset[int]]:
        """The runs of each way around, by the run at which it begins and that which leads back."""
        over = self._dominators()
        return {
            (head, start): frozenset(self._body(head, start))
            for start, following in self.next.items()
            for head in following
            if start in over and head in over[start]
        }

    def has_one_way_out(self, loop: frozenset[int]) -> bool:
        """Whether a single run leads out of a loop, those apart that lead to a failed launch."""
        ways = {
            start
            for start in loop
            for to in self.next[start]
            if to not in loop and (self.next[to] or not is_trap(self.runs[to][-1]))
        }
        return len(ways) == 1

    @cached_property
    def met_in(self) -> dict[int, frozenset[int]]:
        """Loops in which some threads wait and others meet them.

        Their first round is looked at apart: it is the one in which the wait is done.
        """
        return {
            head: body
            for head, body in self.heads.items()
            if self._has(body, _WAITS) and self._has(body, _MEETINGS)
        }

    def _has(self, body: frozenset[int], opcodes: frozenset[str]) -> bool:
        return any(one.opcode in opcodes for start in body for one in self.runs[start])

    def _body(self, head: int, tail: int) -> set[int]:
        body, waiting = {head}, [tail]
        while waiting:
            one = waiting.pop()
            if one not in body:
                body.add(one)
                waiting.extend(self._before.get(one, ()))
        return body

    @cached_property
    def _before(self) -> dict[int, list[int]]:
        before: dict[int, list[int]] = {}
        for start, following in self.next.items():
            for one in following:
                before.setdefault(one, []).append(start)
        return before

    def _dominators(self) -> dict[int, set[int]]:
        """Of each run that can be reached, the runs that every way to it goes through."""
        order = self.order
        place = {start: at for at, start in enumerate(order)}
        over = {0: 1}
        changed = True
        while changed:
            changed = False
            for start in order[1:]:
                known = [over[one] for one in self._before.get(start, ()) if one in over]
                common = known[0] if known else 0
                for one in known[1:]:
                    common &= one
                common |= 1 << place[start]
                if over.get(start) != common:
                    over[start] = common
                    changed = True
        return {
            start: {one for one in order if bits >> place[one] & 1} for start, bits in over.items()
        }

    @cached_property
    def rejoins(self) -> dict[int, int]:
        """Of runs, the next one that every way from there comes to, where there is one.

        Ways that end without a branch count as none.
        """
        order = self.order
        place = {start: at for at, start in enumerate(order)}
        every = (1 << len(order)) - 1
        under = {start: every if self.next[start] else 1 << place[start] for start in order}
        changed = True
        while changed:
            changed = False
            for start in reversed(order):
                common = every
                for one in self.next[start]:
                    common &= under[one]
                common = (common if self.next[start] else 0) | 1 << place[start]
                if common != under[start]:
                    under[start] = common
                    changed = True
        found = {}
        for start in order:
            later = [one for one in order if one != start and under[start] >> place[one] & 1]
            if later and under[start] != every:
                found[start] = max(later, key=lambda one: under[one].bit_count())
        return found

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Runs that can be reached, each after those before it, loops apart."""
        done: list[int] = []
        seen = {0}
        stack = [(0, iter(self.next[0]))]
        while stack:
            start, following = stack[-1]
            for one in following:
                if one not in seen:
                    seen.add(one)
                    stack.append((one, iter(self.next[one])))
                    break
            else:
                done.append(start)
                stack.pop()
        return tuple(reversed(done))

    def loop_of(self, first: int, second: int) -> frozenset[int] | None:
        """The smallest loop that holds both addresses."""
        runs = {self.of(first), self.of(second)}
        return next((loop for loop in self.loops if runs <= loop), None)


def targets(kernel: Kernel, instruction: Instruction) -> tuple[int, ...]:
    """Where a branch or call may go, but for the next instruction."""
    if instruction.opcode in INDIRECT:
        return dict(kernel.jumps).get(instruction.address, ())
    if instruction.opcode in BRANCHES | {"CALL"}:
        return tuple(one.address for one in instruction.operands if isinstance(one, Target))
    return ()


def may_fall_through(instruction: Instruction) -> bool:
    """Whether the next instruction may follow."""
    opcode = instruction.opcode
    always = opcode in BRANCHES | INDIRECT | ENDS | {"RET"} or is_trap(instruction)
    guarded = instruction.guard is not None or any(map(is_predicate, instruction.operands))
    return guarded or not always


def is_trap(instruction: Instruction) -> bool:
    """`BPT.TRAP`: the launch fails."""
    return instruction.opcode == "BPT" and "TRAP" in instruction.modifiers


def changes_tokens(instruction: Instruction) -> bool:
    """Whether threads that run it have waited for more than those that do not."""
    return instruction.opcode in ("ACQBULK", "PREEXIT")


def blocks_of(kernel: Kernel) -> Blocks:
    """Cuts a kernel into runs."""
    starts = {0}
    end = len(kernel.instructions) * BYTES
    for instruction in kernel.instructions:
        after = instruction.address + BYTES
        starts.update(targets(kernel, instruction))
        if instruction.opcode in _ALONE:
            starts.add(instruction.address)
        if instruction.opcode in _LAST or (
            instruction.guard is not None and changes_tokens(instruction)
        ):
            starts.add(after)
        if instruction.opcode == "CALL":
            starts.update(one.value for one in instruction.operands if isinstance(one, Immediate))
    # Where a called function returns to is the instruction after the call, which begins a run.
    kept = sorted(start for start in starts if 0 <= start < end and start % BYTES == 0)
    return Blocks(kernel, tuple(kept))
