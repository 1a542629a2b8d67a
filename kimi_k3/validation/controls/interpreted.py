# SPDX-License-Identifier: Apache-2.0
"""Kernels that are Python: functions over the judge's memory, launched like any other."""

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

Operands = Mapping[str, Any]
P = TypeVar("P")


def source_digest(file: str) -> str:
    """SHA-256 by which a kernel of that source file is declared."""
    return sha256(Path(file).read_bytes()).hexdigest()


def by_name(base: type[P], module: str) -> Mapping[str, type[P]]:
    """The faults of a module: subclasses of an honest program, `WritesPadding` as `writes-padding`.

    Args:
        base: the honest program.
        module: name of the module that has the faults.
    """
    own = [one for one in base.__subclasses__() if one.__module__ == module]
    return {re.sub(r"(?<!^)(?=[A-Z])", "-", one.__name__).lower(): one for one in own}


class Interpreted:
    """See `launcher.Kernel`."""

    def __init__(
        self, name: str, digest: str, function: Callable[[Operands, int], None] | None = None
    ) -> None:
        """Takes the function; without one the kernel does nothing."""
        self.name, self.digest, self._function = name, digest, function

    def __call__(self, operands: Operands, rows: int) -> None:
        """See `launcher.Kernel`."""
        if self._function is not None:
            self._function(operands, rows)
