# SPDX-License-Identifier: Apache-2.0
"""A recorder holds documented names, each once, and copies."""

import pytest
import torch

from kimi_k3.reference.hooks import NoTap, Recorder


def test_a_name_is_recorded_under_its_layer() -> None:
    tap = Recorder()
    x = torch.ones(2)
    assert tap.under("layer.3")("kda.beta", x) is x
    x[:] = 0
    assert tap.values["layer.3.kda.beta"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("prefix", "name"), [("layer.3", "kda.gamma"), ("layer.3", "logits"), ("layer.x", "kda.beta")]
)
def test_an_undocumented_name_is_an_error(prefix: str, name: str) -> None:
    with pytest.raises(KeyError, match=name):
        Recorder().under(prefix)(name, torch.ones(1))


def test_a_second_step_needs_a_second_recorder() -> None:
    tap = Recorder()
    tap("logits", torch.ones(1))
    with pytest.raises(ValueError, match="one Recorder per step"):
        tap("logits", torch.ones(1))


def test_no_tap_returns_what_it_is_given() -> None:
    x = torch.ones(1)
    assert NoTap().under("layer.0")("kda.beta", x) is x
