# SPDX-License-Identifier: Apache-2.0
"""Settings of all tests: one hypothesis profile, the same seeds everywhere; and which tests run.

`tests/gpu` needs Triton, and a GPU for what it is about. It is collected only when it is named, and
then nothing in it is skipped: without Triton it fails.
"""

from pathlib import Path

import pytest
from hypothesis import settings

GPU_TESTS = Path(__file__).parent / "gpu"

settings.register_profile("project", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("project")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves `tests/gpu` out unless an argument of the command line lies in it."""
    if collection_path != GPU_TESTS:
        return None
    named = [(config.invocation_params.dir / arg.split("::")[0]).resolve() for arg in config.args]
    return None if any(path.is_relative_to(GPU_TESTS) for path in named) else True
