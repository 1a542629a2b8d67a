# SPDX-License-Identifier: Apache-2.0
"""What a gate is: a question to a candidate, and what it rules out when it is answered well."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from kimi_k3.validation.bench import Bench


class State(StrEnum):
    """How a gate ended."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not-run"
    """There was nothing to ask, or nobody could tell; never a pass."""


@dataclass(frozen=True)
class Outcome:
    """What a gate found.

    Attributes:
        state: how it ended.
        findings: what is wrong, most telling first.
        notes: what was not looked at, and why.
        facts: numbers that a report shows.
    """

    state: State
    findings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    facts: Mapping[str, float | str] = field(default_factory=dict)


class Gate(Protocol):
    """One gate of the validation."""

    @property
    def number(self) -> str:
        """`G2`."""

    @property
    def name(self) -> str:
        """`numerics`."""

    @property
    def closes(self) -> tuple[int, ...]:
        """Modes of the catalogue that a pass rules out."""

    def judge(self, bench: Bench) -> Outcome:
        """Asks the candidate.

        Raises:
            CandidateError: its process could not be started, or ended.
        """


def outcome(
    findings: Sequence[str], facts: Mapping[str, float | str], notes: Sequence[str] = ()
) -> Outcome:
    """Passed without findings, failed with some; each is told once."""
    once = tuple(dict.fromkeys(findings))
    return Outcome(State.FAILED if once else State.PASSED, once, tuple(notes), facts)
