# SPDX-License-Identifier: Apache-2.0
"""A drafter with the acceptance that fits it, and how long its drafts are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import floor

from fasttrack.errors import InputError, Problem
from kimi_k3.engine.acceptance import Acceptance, RejectionSampling, SyntheticAcceptance
from kimi_k3.engine.drafters import Drafter, NgramDrafter, NoDrafter, SyntheticDrafter

LENGTH = "synthetic_acceptance_length"
RATES = "synthetic_acceptance_rates"


@dataclass(frozen=True)
class Speculation:
    """How an engine speculates.

    Attributes:
        draft: tokens of a full draft; 0 for plain decoding.
        drafter: proposes them.
        acceptance: judges them.
    """

    draft: int
    drafter: Drafter
    acceptance: Acceptance


NO_SPECULATION = Speculation(0, NoDrafter(), RejectionSampling())


def ngram(draft: int, longest: int = 3, shortest: int = 1) -> Speculation:
    """Drafts looked up in the text before them, accepted so that the distribution stays.

    Raises:
        InputError: a number that is no length.
    """
    problems = [*_draft_problems(draft)]
    if not 1 <= shortest <= longest:
        saw = f"{shortest} to {longest} tokens"
        problems.append(Problem("ngram", saw, "at least 1, and no more than the longest"))
    if problems:
        raise InputError(problems)
    return Speculation(draft, NgramDrafter(longest, shortest), RejectionSampling())


def synthetic(
    draft: int,
    vocab_size: int,
    *,
    acceptance_length: float | None = None,
    acceptance_rates: Sequence[float] | None = None,
    seed: int = 0,
) -> Speculation:
    """Random drafts that are accepted by rate: for measurements only, the text means nothing.

    Args:
        draft: draft tokens per window.
        vocab_size: of the model.
        acceptance_length: tokens per window on average, 1 to draft + 1.
        acceptance_rates: instead, how often each draft token stands with all before it.
        seed: of drafts and decisions.

    Raises:
        InputError: see `resolve_rates`.
    """
    rates = resolve_rates(draft, acceptance_length, acceptance_rates)
    return Speculation(draft, SyntheticDrafter(vocab_size, seed), SyntheticAcceptance(rates, seed))


def resolve_rates(
    draft: int, length: float | None, rates: Sequence[float] | None
) -> tuple[float, ...]:
    """The rate of each draft token, unconditional: how often it and all before it stand.

    A length L becomes rates that add up to L - 1: ones, one fraction, zeros.

    Args:
        draft: draft tokens per window.
        length: tokens per window on average, or None.
        rates: of each draft token, or None; exactly one of the two is given.

    Returns:
        [draft] rates.

    Raises:
        InputError: everything that is wrong.
    """
    problems = [*_draft_problems(draft)]
    if (length is None) == (rates is None):
        saw = "neither" if length is None else "both"
        problems.append(Problem(f"{LENGTH}, {RATES}", saw, "exactly one of the two"))
    if length is not None and not 1 <= length <= draft + 1:
        problems.append(Problem(LENGTH, str(length), f"a number from 1 to {draft + 1}"))
    if rates is not None:
        problems.extend(_rate_problems(draft, rates))
    if problems:
        raise InputError(problems)
    if rates is not None:
        return tuple(float(rate) for rate in rates)
    accepted = (length or 1) - 1
    whole = floor(accepted)
    return (*[1.0] * whole, accepted - whole, *[0.0] * draft)[:draft]


def _draft_problems(draft: int) -> Iterator[Problem]:
    if draft < 1:
        yield Problem("draft", str(draft), "at least 1 token")


def _rate_problems(draft: int, rates: Sequence[float]) -> Iterator[Problem]:
    shown = ", ".join(map(str, rates))
    if len(rates) != draft:
        yield Problem(RATES, f"{len(rates)} rates", f"{draft}, one for each draft token")
    if any(not 0 <= rate <= 1 for rate in rates):
        yield Problem(RATES, shown, "numbers from 0 to 1")
    elif any(later > earlier for earlier, later in pairwise(rates)):
        want = "rates that never rise: a token stands only if all before it do"
        yield Problem(RATES, shown, want)
