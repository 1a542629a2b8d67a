# SPDX-License-Identifier: Apache-2.0
"""Which steps the specialised path takes: one decision per step, the same on every rank.

The decision is a pure function of `StepShape` and of facts that are fixed at startup, all of them
host state that every rank shares. A rank that decided by anything else would wait for peers that
never come.
"""

from dataclasses import dataclass
from enum import StrEnum

from fasttrack.manifest.model import Region
from kimi_k3.step import Group, Kind, StepShape

BUCKETS = (1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64)
"""Row counts that are prepared in any case: every small one, where padding would cost most, and
then the row buckets that kernels are compiled for."""


class Reason(StrEnum):
    """Why the stock path takes a step: the first that holds, in this order.

    Counters bear these words, so they stay what they are.
    """

    PREFILL = "prefill"
    """Some rows are tokens of a prompt."""
    MIXED = "mixed"
    """Windows of several widths, or in several groups."""
    PARTIAL_DRAFTS = "partial-drafts"
    """The window is neither one token nor the full draft and one."""
    DRAFT = "draft"
    """The region does not admit so many draft tokens."""
    REQUESTS = "requests"
    """The region does not admit so many requests."""
    ROWS = "rows"
    """More rows than the region admits."""
    UNPREPARED = "unprepared"
    """No kernels or graph are prepared for so many rows."""
    CONTEXT = "context"
    """A request is longer than the region admits."""


@dataclass(frozen=True)
class Plan:
    """The specialised path takes the step.

    Attributes:
        requests: padding included.
        rows: new tokens of each request.
    """

    requests: int
    rows: int

    @property
    def total(self) -> int:
        """Rows of the step."""
        return self.requests * self.rows


@dataclass(frozen=True)
class Fallback:
    """The stock path takes the step.

    Attributes:
        reason: why.
    """

    reason: Reason


@dataclass(frozen=True)
class RowCounts:
    """The row counts that are prepared, and what a step is padded to.

    Both backends are given steps of these sizes, so that neither sees another schedule.

    Attributes:
        graph_sizes: row counts that the server captures graphs for, in any order.
    """

    graph_sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if any(size < 1 for size in self.graph_sizes):
            raise ValueError(f"graphs of {self.graph_sizes} rows; want at least 1 each")

    def prepared(self, width: int) -> tuple[int, ...]:
        """Row counts at one window width, rising.

        Buckets and sizes of graphs, rounded up to whole windows, and the most whole windows that
        the largest bucket holds; none above it.

        Args:
            width: rows of each request, at least 1.
        """
        rounded = {-(-size // width) * width for size in (*BUCKETS, *self.graph_sizes)}
        most = BUCKETS[-1] // width * width
        return tuple(sorted(rows for rows in {*rounded, most} if 0 < rows <= most))

    def padded_requests(self, live: int, width: int) -> int:
        """Requests to fill a step up to: the fewest that make a prepared row count.

        Args:
            live: requests with tokens, at least 1.
            width: rows of each.

        Returns:
            At least `live`; `live` itself when no prepared row count holds them all.
        """
        enough = (rows // width for rows in self.prepared(width) if rows >= live * width)
        return next(enough, live)


@dataclass(frozen=True)
class Planner:
    """Decides which steps the specialised path takes.

    Attributes:
        region: the region that admitted the deployment; its bounds hold for every step.
        rows: the prepared row counts.
        draft: draft tokens of a full verify window; 0 without speculation.
    """

    region: Region
    rows: RowCounts
    draft: int

    def plan(self, shape: StepShape) -> Plan | Fallback:
        """The decision for one step.

        Args:
            shape: the step, padding included.

        Raises:
            ValueError: a step without groups.
        """
        if not shape.groups:
            raise ValueError("a step of 0 groups; want at least 1")
        reason = self._reason(shape)
        if reason is not None:
            return Fallback(reason)
        return Plan(shape.groups[0].requests, shape.groups[0].rows)

    def _reason(self, shape: StepShape) -> Reason | None:
        if any(group.kind is Kind.PREFILL for group in shape.groups):
            return Reason.PREFILL
        if len(shape.groups) > 1:
            return Reason.MIXED
        (group,) = shape.groups
        checks = {
            Reason.PARTIAL_DRAFTS: group.rows in {1, 1 + self.draft},
            Reason.DRAFT: group.rows - 1 in self.region.draft_tokens,
            Reason.REQUESTS: self._admits_requests(group),
            Reason.ROWS: group.total <= self.region.rows_max,
            Reason.UNPREPARED: group.total in self.rows.prepared(group.rows),
            Reason.CONTEXT: shape.context <= self.region.context_max,
        }
        return next((reason for reason, holds in checks.items() if not holds), None)

    def _admits_requests(self, group: Group) -> bool:
        bounds = self.region.requests
        return bounds.min <= group.requests <= bounds.max
