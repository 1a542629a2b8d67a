# SPDX-License-Identifier: Apache-2.0
"""What an engine counts. Plain data; times are the caller's to take."""

from dataclasses import dataclass, field
from enum import StrEnum


class StepKind(StrEnum):
    """What a step was made of."""

    DECODE = "decode"
    """Windows of one length."""
    RAGGED = "ragged decode"
    """Windows of several lengths: some request had no full draft."""
    PREFILL = "prefill"
    """Prompt tokens alone."""
    MIXED = "mixed"
    """Windows and prompt tokens."""


@dataclass
class DraftCounts:
    """How speculation went. Verdicts count in full, though tokens past a request's end drop.

    Attributes:
        windows: windows of decoding, with a draft or without.
        drafts: windows that carried a draft.
        drafted: draft tokens.
        accepted: draft tokens that stood.
        accepted_at: of those, how many stood at each place of the draft.
    """

    windows: int = 0
    drafts: int = 0
    drafted: int = 0
    accepted: int = 0
    accepted_at: list[int] = field(default_factory=list)

    def count(self, drafted: int, accepted: int) -> None:
        """Adds one window of `drafted` draft tokens, of which the first `accepted` stood."""
        self.windows += 1
        self.drafts += drafted > 0
        self.drafted += drafted
        self.accepted += accepted
        self.accepted_at.extend([0] * (drafted - len(self.accepted_at)))
        for place in range(accepted):
            self.accepted_at[place] += 1

    @property
    def acceptance_length(self) -> float | None:
        """Tokens that a window with a draft gave on average, 1 to 1 + draft; None without any."""
        return 1 + self.accepted / self.drafts if self.drafts else None


@dataclass
class RequestMetrics:
    """Of one request.

    Attributes:
        prefill_steps: steps that took in parts of the prompt.
        speculation: its windows.
    """

    prefill_steps: int = 0
    speculation: DraftCounts = field(default_factory=DraftCounts)


@dataclass
class EngineMetrics:
    """Of one engine since it was made.

    Attributes:
        steps: by kind.
        prompt_tokens: taken in.
        generated_tokens: released.
        null_requests: that padded steps.
        speculation: all windows.
    """

    steps: dict[StepKind, int] = field(default_factory=lambda: dict.fromkeys(StepKind, 0))
    prompt_tokens: int = 0
    generated_tokens: int = 0
    null_requests: int = 0
    speculation: DraftCounts = field(default_factory=DraftCounts)
