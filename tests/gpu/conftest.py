# SPDX-License-Identifier: Apache-2.0
"""Without a GPU Triton kernels run in its interpreter, which has to be chosen before their import."""

import os

import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"


@pytest.fixture(autouse=True, scope="session")
def _one_thread_for_small_tensors() -> None:
    torch.set_num_threads(1)
