# SPDX-License-Identifier: Apache-2.0
"""Tables of variants, and what a variant is launched with. No compiler, no torch."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from fasttrack.manifest.variants import Variant, VariantTable, load_variant_table
from kimi_k3.decode.kernels.build import HERE, PACKAGE, Built, build, parameters_of
from kimi_k3.decode.kernels.shapes import LaunchShape, Operand

TABLE = "variants.json"


@dataclass(frozen=True)
class Candidate:
    """A variant's machine code with all that a launch of it takes.

    Attributes:
        variant: its row of the table.
        built: its machine code.
        shape: how it is launched.
        operands: its parameters in order.
    """

    variant: Variant
    built: Built
    shape: LaunchShape
    operands: tuple[Operand, ...]

    @property
    def name(self) -> str:
        """The kernel, as reports name it."""
        return self.variant.kernel


def table(kernel: str) -> VariantTable:
    """The variant table of a kernel.

    Args:
        kernel: its folder.

    Raises:
        InputError: the table is malformed.
    """
    path = HERE / kernel / TABLE
    return load_variant_table(path.read_bytes(), path.name)


def candidate(kernel: str, variant: Variant, cache: Path) -> Candidate:
    """A variant, out of the cache or compiled now.

    Args:
        kernel: the folder of its kernel.
        variant: a row of the kernel's table.
        cache: where cubins are kept.

    Raises:
        InputError: it is in no cache and can not be compiled.
    """
    return with_code(kernel, variant, build(kernel, variant, cache))


def with_code(kernel: str, variant: Variant, built: Built) -> Candidate:
    """A variant and code of it that was made elsewhere."""
    parameters = parameters_of(variant)
    module = _shapes(kernel)
    return Candidate(variant, built, module.launch_shape(parameters), module.operands(parameters))


def launch_shape(kernel: str, parameters: Mapping[str, Any]) -> LaunchShape:
    """How code of these parameters is launched."""
    shape: LaunchShape = _shapes(kernel).launch_shape(parameters)
    return shape


def operands(kernel: str, parameters: Mapping[str, Any]) -> tuple[Operand, ...]:
    """The parameters of code that was compiled so, in order."""
    found: tuple[Operand, ...] = _shapes(kernel).operands(parameters)
    return found


def early_trigger(kernel: str) -> str:
    """Why the launch after a kernel's may start before that has ended; empty if it may not."""
    why: str = getattr(_shapes(kernel), "EARLY_TRIGGER", "")
    return why


def _shapes(kernel: str) -> ModuleType:
    return importlib.import_module(f"{PACKAGE}.{kernel}.shape")
