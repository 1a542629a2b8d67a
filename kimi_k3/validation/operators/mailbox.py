# SPDX-License-Identifier: Apache-2.0
"""Rows that arrive by a mailbox: what `decode.kernels.wait` describes, as the judge fills it.

The rows have come before the launch, so that no wait is long. The other parity and the rows behind
the last one hold the sentinel, and stay so; what was taken is armed again.
"""

import torch

from kimi_k3.decode.kernels.wait import HEALTH_WORDS, PARITIES, SENTINEL
from kimi_k3.validation.case import Case, Content, Expected
from kimi_k3.validation.operators.base import written

MOST_STEPS = 2**40
LIMIT_NS = 50_000_000


def mailbox_content(
    case: Case, found: dict[str, torch.Tensor], rng: torch.Generator
) -> dict[str, torch.Tensor]:
    """The operands of a wait, of which the row values are taken out of what was drawn.

    Args:
        case: what the call is about.
        found: drawn so far; `delta`, or else `prefix`, is what arrives.
        rng: draws the step.
    """
    rows = found.pop("delta" if case.has("prefix") else "prefix").to(torch.bfloat16)
    words = torch.full(case.shape("mailbox"), SENTINEL, dtype=torch.int32)
    step = int(torch.randint(MOST_STEPS, (1,), generator=rng))
    per_step = int(torch.randint(1, 1 << 10, (1,), generator=rng))
    at = (step * per_step + case.scalars["ordinal"]) % PARITIES
    words[at, : case.rows] = rows.contiguous().view(torch.int32)
    return {
        "mailbox": words,
        "counter": torch.tensor([step, step, step]),
        "exchange": torch.tensor([per_step, 3, 11, LIMIT_NS]),
        "fail": torch.zeros(1, dtype=torch.int32),
        "health": torch.zeros(HEALTH_WORDS, dtype=torch.int64),
    }


def arrived(case: Case, content: Content) -> torch.Tensor:
    """The rows [M, H] that the mailbox brings, BF16."""
    words = content["mailbox"][_parity(case, content), : case.rows]
    return words.contiguous().view(torch.bfloat16)


def armed(case: Case, content: Content) -> dict[str, Expected]:
    """What a wait that ended well leaves: its rows armed again, no failure, no record."""
    shape = case.shape("mailbox")
    mask = torch.zeros(shape, dtype=torch.bool)
    mask[_parity(case, content), : case.rows] = True
    value = torch.full(shape, float(SENTINEL), dtype=torch.float64)
    none = torch.zeros(0, dtype=torch.float64)
    return {
        "mailbox": Expected(value, torch.zeros_like(value), mask),
        "fail": written(case, "fail", none, none),
        "health": written(case, "health", none, none),
    }


def _parity(case: Case, content: Content) -> int:
    step, per_step = int(content["counter"][0]), int(content["exchange"][0])
    return (step * per_step + case.scalars["ordinal"]) % PARITIES
