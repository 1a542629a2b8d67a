# SPDX-License-Identifier: Apache-2.0
"""Without a GPU, kernels run in Triton's interpreter; that is chosen before they are imported."""

import os
import warnings

import pytest
import torch

if torch.cuda.is_available():
    with warnings.catch_warnings():  # fla-core speaks of its own options when it is imported
        warnings.simplefilter("ignore")
        import fla.ops.kda  # noqa: F401
else:
    os.environ["TRITON_INTERPRET"] = "1"


@pytest.fixture(autouse=True, scope="session")
def _one_thread_for_small_tensors() -> None:
    torch.set_num_threads(1)
