# SPDX-License-Identifier: Apache-2.0
"""Errors that a person can act on, and the exit codes that scripts rely on.

A library function raises `InputError` when what it was given is wrong (exit code 2), and
`FactUnavailable` when a fact about the change can not be established. Everything else that
escapes is a fault of ours and ends in exit code 70 with a report block.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of every `fasttrack` command."""

    FAST_TRACK = 0
    REFUSED = 1
    BAD_INPUT = 2
    NEEDS_EVIDENCE = 3
    ORDINARY_REVIEW = 4
    OUR_FAULT = 70


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong with an input, said so that its owner can mend it.

    Attributes:
        where: `file:line:column`, a command-line option or a git revision.
        saw: what was found there.
        want: what would be accepted.
        fix: the next edit or command; empty when `want` says it all.
    """

    where: str
    saw: str
    want: str
    fix: str = ""

    def __str__(self) -> str:
        """One line: place, what was seen, what is wanted, how to get there."""
        line = f"{self.where}: saw {self.saw}; want {self.want}"
        return f"{line}; fix: {self.fix}" if self.fix else line


class FasttrackError(Exception):
    """Base of all errors that `fasttrack` raises on purpose."""


class InputError(FasttrackError):
    """Bad input or configuration; carries every problem found in one pass."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        if not problems:
            raise ValueError("an InputError names at least one problem")
        self.problems = tuple(problems)
        super().__init__("\n".join(str(p) for p in self.problems))

    @classmethod
    def one(cls, where: str, saw: str, want: str, fix: str = "") -> "InputError":
        """An error with a single problem."""
        return cls([Problem(where, saw, want, fix)])


class FactUnavailable(FasttrackError):  # noqa: N818  (a missing fact is not an error of the input)
    """A fact about the change can not be established (too large, not text, absent object).

    The rule engine turns it into a finding "could not tell" of level `route`, never into a pass.
    """
