# SPDX-License-Identifier: Apache-2.0
"""One thread: the tensors are small, and a reduction then has one order on every machine."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    torch.set_num_threads(1)
