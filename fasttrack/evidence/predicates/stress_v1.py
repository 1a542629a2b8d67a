# SPDX-License-Identifier: Apache-2.0
"""Claims: results stayed right while launches, ranks and memory traffic were delayed on purpose.

Does not claim: that no order of events could break it; the delays are a sample. Needs the harness:
a process that could forge its own result is no evidence here.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fasttrack.evidence.predicates.common import Execution, Facts, Gate, Record, Seed
from fasttrack.manifest.fields import Count, CountOrZero, Identifier
from fasttrack.vocabulary import Kind

TYPE = "urn:fasttrack-decode:predicate:stress:v1"
KIND = Kind.STRESS


class Setting(Record):
    """One way of delaying, and how often it was tried."""

    delay: Identifier
    """Which delay, such as `pdl-producer` or `rank-skew`."""
    longest_us: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
    """Longest delay."""
    iterations: Count
    """Runs, each compared."""
    wrong: CountOrZero
    """Runs with a wrong result, a hang or a lost write."""


class StressV1(Facts):
    """Timing stress of one unit at one cell."""

    JUDGED_APART: ClassVar[bool] = True

    profile: Literal["smoke", "evidence", "soak"]
    """How long and how wide."""
    seeds: tuple[Seed, ...] = Field(min_length=1, max_length=1024)
    """Seeds of inputs and delays, those that the plan chose."""
    settings: tuple[Setting, ...] = Field(min_length=1, max_length=256)
    """What was tried."""
    execution: Execution
    """What ran."""
    gates: tuple[Gate, ...] = Field(min_length=1, max_length=64)
    """Gates that judged the results, with their negative controls."""

    def problems(self) -> list[str]:
        """Why the statement shows nothing; empty when it does."""
        wrong = [f"{s.delay}: {s.wrong} of {s.iterations} wrong" for s in self.settings if s.wrong]
        gates = [problem for gate in self.gates for problem in gate.problems()]
        return [*wrong, *self.execution.problems(), *gates, *self.forgeable()]
