# SPDX-License-Identifier: Apache-2.0
"""Which decode steps (requests, draft tokens, rows) evidence has to visit.

Rows move in steps of 1 + draft, and every function here computes the step nearest to a bound
instead of walking to it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fasttrack.manifest.region import Box


@dataclass(frozen=True, order=True)
class Step:
    """One decode step's size."""

    rows: int
    draft_tokens: int
    requests: int

    def values(self) -> dict[str, str | int]:
        """Axis to value."""
        return {
            "requests": self.requests,
            "draft_tokens": self.draft_tokens,
            "rows": self.rows,
        }


def outer_drafts(box: Box) -> tuple[int, ...]:
    """The smallest draft (0 where the region has it) and the largest."""
    drafts = tuple(box.drafts_in_use())
    return tuple(dict.fromkeys((drafts[0], drafts[-1])))


def kernel_steps(box: Box, switch_points: Sequence[int]) -> tuple[Step, ...]:
    """Smallest and largest rows and both sides of each switch point, at the outer drafts.

    Drafts between the outer ones are visited once each, at their fewest requests.
    """
    outer = outer_drafts(box)
    steps: dict[Step, None] = {}
    for draft in outer:
        least, most = box.requests_at(draft)
        width = 1 + draft
        numbers = [least, most]
        for point in switch_points:
            below = (point - 1) // width
            numbers += [below, below + 1]
        # A side without admissible rows needs no step of its own: the other side is an end.
        admissible = (n for n in numbers if least <= n <= most)
        steps |= {step_at(n, draft): None for n in sorted(admissible)}
    for draft in box.drafts_in_use():
        if draft not in outer:
            steps[step_at(box.requests[0], draft)] = None
    return tuple(steps)


def smallest(box: Box) -> Step:
    """The step with the fewest rows."""
    return min(step_at(box.requests_at(d)[0], d) for d in box.drafts_in_use())


def largest(box: Box) -> Step:
    """The step with the most rows; among equals the one with the shortest draft."""
    steps = (step_at(box.requests_at(d)[1], d) for d in box.drafts_in_use())
    return min(steps, key=lambda step: (-step.rows, step.draft_tokens))


def first_in(box: Box, low: int, high: int) -> Step | None:
    """The step with the fewest rows in low..high, or None when no step has any of them."""
    return min(_firsts(box, low, high), default=None)


def step_at(requests: int, draft: int) -> Step:
    """The step of so many requests with so many draft tokens each."""
    return Step(requests * (1 + draft), draft, requests)


def _firsts(box: Box, low: int, high: int) -> Iterator[Step]:
    for draft in box.drafts_in_use():
        least, most = box.requests_at(draft)
        requests = max(least, -(-low // (1 + draft)))
        if requests <= most and requests * (1 + draft) <= high:
            yield step_at(requests, draft)
