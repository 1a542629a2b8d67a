# SPDX-License-Identifier: Apache-2.0
"""The bench of the mini model says when it would measure other people's work."""

import pytest

from tests.bench.cpu import warned


@pytest.mark.parametrize("load", [2.01, 7.5])
def test_a_load_above_the_number_of_processors_is_warned_of(load: float) -> None:
    said = warned(load, 2)
    assert said.startswith(f"warning: load average {load:.2f} on 2 processors: ")
    assert said.endswith("\n")


@pytest.mark.parametrize("load", [0.0, 2.0])
def test_an_idle_machine_is_not(load: float) -> None:
    assert warned(load, 2) == ""
