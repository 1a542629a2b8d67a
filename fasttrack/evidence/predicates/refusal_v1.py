# SPDX-License-Identifier: Apache-2.0
"""Claims: asked about a point past a bound, the gate refused, and said why.

Does not claim: that a server asks the gate. The point is a question with given facts, so that it is
asked on a CPU whatever its hardware.
"""

from typing import Annotated

from pydantic import Field

from fasttrack.evidence.predicates.common import Facts, TestResults
from fasttrack.vocabulary import Kind

TYPE = "urn:fasttrack-decode:predicate:refusal:v1"
KIND = Kind.REFUSAL

Reason = Annotated[str, Field(min_length=1, max_length=500)]


class RefusalV1(Facts):
    """The gate's answer to one question past one bound."""

    refused: bool
    """Whether it refused."""
    reasons: tuple[Reason, ...] = Field(default=(), max_length=256)
    """Every reason that it gave."""
    results: TestResults
    """The tests that asked."""

    def problems(self) -> list[str]:
        """Why the statement shows nothing; empty when it does."""
        if not self.refused:
            return ["the gate admitted what is past the bound"]
        silent = [] if self.reasons else ["the gate gave no reason"]
        return [*silent, *self.results.problems()]
