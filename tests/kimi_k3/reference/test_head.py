# SPDX-License-Identifier: Apache-2.0
"""Both ends of the model, whole and split over ranks."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kimi_k3.reference.context import Context
from kimi_k3.reference.head import embed, head
from kimi_k3.rounding import exact, stock
from tests.kimi_k3.reference import second
from tests.kimi_k3.reference.builders import model_weights, odd

C = odd()
W = model_weights(C, 4)


def test_a_token_s_row_is_its_embedding() -> None:
    tokens = torch.tensor([0, 57, 3, 3])
    got = embed(Context(C, stock()), W, tokens)
    assert torch.equal(got, W.embed_tokens[tokens].float())


def test_a_row_of_wider_weights_is_rounded_like_every_other_value() -> None:
    wide = replace(W, embed_tokens=W.embed_tokens.float() * (1 + 2.0**-12))
    got = embed(Context(C, stock()), wide, torch.arange(58))
    assert torch.equal(got, wide.embed_tokens.bfloat16().float())


@pytest.mark.parametrize("token", [-1, 58, 2**40])
def test_ids_outside_the_vocabulary_are_refused(token: int) -> None:
    with pytest.raises(ValueError, match="vocabulary of 58"):
        embed(Context(C, stock()), W, torch.tensor([1, token]))


def test_the_head_normalises_and_projects() -> None:
    h = torch.randn(3, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    got = head(Context(C, exact(torch.float64)), W, h)
    want = second.rms(h.numpy(), second.a(W.norm), 1e-5) @ second.a(W.lm_head).T
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
