# SPDX-License-Identifier: Apache-2.0
"""A variant of a kernel in a candidate's process: its cubin is loaded as it was built, no more."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fasttrack.manifest.variants import Variant
from kimi_k3.decode.kernels.catalogue import candidate
from kimi_k3.decode.kernels.launch import Kernel
from kimi_k3.validation.launcher import Launcher


class Cubin:
    """See `launcher.Program`: one launch."""

    def __init__(self, kernel: Kernel) -> None:
        built = kernel.candidate.built
        self.name, self.digest, self._kernel = built.entry, built.digest, kernel
        self._names = [operand.name for operand in kernel.candidate.operands]

    def run(self, launcher: Launcher, operands: Mapping[str, Any], rows: int) -> None:
        """See `launcher.Program`."""
        launcher.launch(self, operands, rows)

    def __call__(self, operands: Mapping[str, Any], rows: int) -> None:
        """See `launcher.Kernel`."""
        self._kernel.launch([operands[name] for name in self._names], rows, pdl=False)


def program(kernel: str, variant: Mapping[str, Any], cache: str) -> Cubin:
    """The program of a candidate.

    Args:
        kernel: its folder.
        variant: its row of the kernel's table.
        cache: where its cubin is kept.
    """
    row = Variant.model_validate_json(json.dumps(variant))
    return Cubin(Kernel(candidate(kernel, row, Path(cache))))
