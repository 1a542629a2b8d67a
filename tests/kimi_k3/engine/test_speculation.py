# SPDX-License-Identifier: Apache-2.0
"""Settings of speculation: how a synthetic acceptance is resolved, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.errors import InputError
from kimi_k3.engine.acceptance import SyntheticAcceptance
from kimi_k3.engine.drafters import NgramDrafter
from kimi_k3.engine.speculation import ngram, resolve_rates, synthetic

LENGTHS: dict[str, tuple[int, float, tuple[float, ...]]] = {
    "nothing stands": (3, 1, (0.0, 0.0, 0.0)),
    "whole tokens": (7, 4.0, (1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0)),
    "whole tokens and a fraction": (4, 3.25, (1.0, 1.0, 0.25, 0.0)),
    "less than one": (2, 1.5, (0.5, 0.0)),
    "everything stands": (2, 3, (1.0, 1.0)),
    "all but a fraction": (2, 2.75, (1.0, 0.75)),
}


@pytest.mark.parametrize("case", LENGTHS)
def test_a_length_becomes_ones_a_fraction_and_zeros(case: str) -> None:
    draft, length, rates = LENGTHS[case]
    assert resolve_rates(draft, length, None) == rates


@given(draft=st.integers(1, 12), share=st.floats(0, 1))
def test_rates_of_a_length_are_valid_and_add_up_to_it(draft: int, share: float) -> None:
    """1 + the sum is the mean: exact but for the rounding of a handful of additions."""
    length = 1 + share * draft
    rates = resolve_rates(draft, length, None)
    assert len(rates) == draft
    assert abs(1 + sum(rates) - length) < 1e-12
    assert resolve_rates(draft, None, rates) == rates


NOT_BOTH = "synthetic_acceptance_length, synthetic_acceptance_rates: saw"
REFUSED: dict[str, tuple[int, float | None, list[float] | None, list[str]]] = {
    "neither": (3, None, None, [f"{NOT_BOTH} neither; want exactly one of the two"]),
    "both": (1, 1.5, [0.5], [f"{NOT_BOTH} both; want exactly one of the two"]),
    "a length below 1": (3, 0.9, None, ["_length: saw 0.9; want a number from 1 to 4"]),
    "a length past the draft": (3, 4.1, None, ["_length: saw 4.1; want a number from 1 to 4"]),
    "a length that is no number": (3, float("nan"), None, ["_length: saw nan; want a number"]),
    "too few rates": (3, None, [0.5], ["_rates: saw 1 rates; want 3, one for each draft token"]),
    "too many rates": (1, None, [0.5, 0.1], ["_rates: saw 2 rates; want 1, one for each"]),
    "a rate above 1": (2, None, [1.5, 0.5], ["_rates: saw 1.5, 0.5; want numbers from 0 to 1"]),
    "a rate below 0": (2, None, [0.5, -0.1], ["_rates: saw 0.5, -0.1; want numbers from 0 to 1"]),
    "a rate that is no number": (1, None, [float("nan")], ["_rates: saw nan; want numbers"]),
    "rates that rise": (3, None, [0.5, 0.2, 0.3], ["_rates: saw 0.5, 0.2, 0.3; want rates that"]),
    "no draft": (0, 1.0, None, ["draft: saw 0; want at least 1 token"]),
    "everything at once": (
        2,
        9.0,
        [0.1, 0.2, 0.3],
        ["saw both", "_length: saw 9.0", "saw 3 rates", "_rates: saw 0.1, 0.2, 0.3; want rates"],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_acceptance_is_refused_with_every_reason(case: str) -> None:
    draft, length, rates, wanted = REFUSED[case]
    with pytest.raises(InputError) as caught:
        synthetic(draft, 10, acceptance_length=length, acceptance_rates=rates)
    lines = [str(problem) for problem in caught.value.problems]
    assert len(lines) == len(wanted)
    for line, words in zip(lines, wanted, strict=True):
        assert words in line


def test_synthetic_acceptance_brings_its_note_and_ngrams_bring_none() -> None:
    assert synthetic(2, 10, acceptance_rates=[0.5, 0.5]).acceptance == SyntheticAcceptance(
        (0.5, 0.5)
    )
    assert synthetic(2, 10, acceptance_length=2).acceptance.notes == ("meaningless text",)
    assert ngram(5, 4, 2).drafter == NgramDrafter(4, 2)
    assert ngram(5).acceptance.notes == ()


def test_ngrams_that_are_none_are_refused_with_every_reason() -> None:
    with pytest.raises(InputError) as caught:
        ngram(0, longest=1, shortest=2)
    assert [str(problem) for problem in caught.value.problems] == [
        "draft: saw 0; want at least 1 token",
        "ngram: saw 2 to 1 tokens; want at least 1, and no more than the longest",
    ]
