# SPDX-License-Identifier: Apache-2.0
"""Where there is a GPU, the processes of candidates import torch while the tests do."""

from pathlib import Path

import pytest

from kimi_k3.validation.server import server

if Path("/dev/nvidiactl").exists():
    server()


@pytest.fixture(autouse=True, scope="session")
def _one_thread_for_small_tensors() -> None:
    import torch  # noqa: PLC0415  (the server has started before)

    torch.set_num_threads(1)
