# SPDX-License-Identifier: Apache-2.0
"""Claims: the unit's tests passed for one cell, the path itself ran, and nothing took its place.

Does not claim: that the tests are good ones (FT4xx), that timing changes nothing (`stress`), or
anything about other cells. Signed by a runner of the cell's hardware.
"""

from pydantic import Field

from fasttrack.evidence.predicates.common import (
    Execution,
    Facts,
    Gate,
    Seed,
    TestResults,
    Tolerance,
)
from fasttrack.vocabulary import Kind

TYPE = "urn:fasttrack-decode:predicate:kernel-test:v1"
KIND = Kind.KERNEL_TEST


class KernelTestV1(Facts):
    """Numerical tests of one unit at one cell."""

    results: TestResults
    """Tests by outcome."""
    seeds: tuple[Seed, ...] = Field(min_length=1, max_length=1024)
    """Seeds of the inputs, those that the plan chose."""
    tolerances: tuple[Tolerance, ...] = Field(default=(), max_length=256)
    """What results were compared with."""
    execution: Execution
    """What ran."""
    gates: tuple[Gate, ...] = Field(default=(), max_length=64)
    """Gates of the validation harness, where it was used."""

    def problems(self) -> list[str]:
        """Why the statement shows nothing; empty when it does."""
        gates = [problem for gate in self.gates for problem in gate.problems()]
        return [*self.results.problems(), *self.execution.problems(), *gates]
