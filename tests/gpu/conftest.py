# SPDX-License-Identifier: Apache-2.0
"""Without a GPU, kernels run in Triton's interpreter; that is chosen before they are imported."""

import os

import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"


@pytest.fixture(autouse=True, scope="session")
def _one_thread_for_small_tensors() -> None:
    torch.set_num_threads(1)
