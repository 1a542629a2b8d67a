# SPDX-License-Identifier: Apache-2.0
"""Puts kernels into an executor: every variant of this device is loaded before the first step.

`Setup.decode_kernels` asks for it. What it needs and does not find it says at once, and
nothing falls back silently: operators without a kernel are the reference's, and `Executor.served`
names who computed each.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from fasttrack.errors import InputError
from fasttrack.manifest.variants import Variant
from kimi_k3.decode.executor import Executor
from kimi_k3.decode.kernels.attn_res import operators
from kimi_k3.decode.kernels.build import parameters_of
from kimi_k3.decode.kernels.catalogue import candidate, table
from kimi_k3.decode.kernels.launch import Kernel
from kimi_k3.reference.context import Context

ATTN_RES = "attn_res"


def with_kernels(executor: Executor, ctx: Context, tp: int, cache: Path) -> Executor:
    """The same executor over the kernels that there are.

    Args:
        executor: one rank's, on a GPU.
        ctx: what its other operators compute with.
        tp: ranks.
        cache: where cubins are kept.

    Raises:
        InputError: this device, this tensor parallelism or this model has no variants, or their
            machine code is neither cached nor can be compiled.
        LaunchError: the driver refuses a cubin.
    """
    rows = variants_for(table(ATTN_RES).variants, arch_of_device(), tp)
    for variant in rows:
        operators.require_model(executor.config, parameters_of(variant))
    launcher = OnDevice(tuple(Kernel(candidate(ATTN_RES, row, cache)) for row in rows))
    return operators.with_residual_mixes(executor, ctx, launcher)


def arch_of_device() -> str:
    """The architecture that cubins for the current device are compiled for.

    Raises:
        InputError: there is no GPU.
    """
    if not torch.cuda.is_available():
        raise InputError.one("decode_kernels", "no GPU", "a GPU, or none of them")
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}a"


def variants_for(variants: Sequence[Variant], arch: str, tp: int) -> tuple[Variant, ...]:
    """Those of one architecture and tensor parallelism.

    Raises:
        InputError: there are none.
    """
    found = tuple(one for one in variants if (one.arch, one.tp) == (arch, tp))
    if not found:
        known = sorted({(one.arch, one.tp) for one in variants})
        want = ", ".join(f"{arch} at tp {tp}" for arch, tp in known)
        raise InputError.one("decode_kernels", f"{arch} at tp {tp}", f"one of {want}")
    return found


@dataclass(frozen=True)
class Launched:
    """How often a variant was launched, by the digest of its machine code."""

    kernel: str
    variant: str
    digest: str
    launches: int


@dataclass(frozen=True)
class OnDevice:
    """Launches by kernel and rows, on torch's current stream, after all that is before.

    Attributes:
        kernels: every variant, loaded.
    """

    kernels: tuple[Kernel, ...]

    def __call__(self, form: str, values: Mapping[str, torch.Tensor | int], rows: int) -> None:
        """See `operators.Launcher`."""
        kernel = self.serving(f"{operators.NAME}-{form}", rows)
        order = [values[one.name] for one in kernel.candidate.operands]
        # The operators before and after are no kernels yet, so that nothing would start early.
        kernel.launch(order, rows, pdl=False)

    def serving(self, kernel: str, rows: int) -> Kernel:
        """The variant of a kernel that serves some rows.

        Raises:
            ValueError: none does.
        """
        for one in self.kernels:
            variant = one.candidate.variant
            if variant.kernel == kernel and variant.rows[0] <= rows <= variant.rows[1]:
                return one
        raise ValueError(f"no variant of {kernel} serves {rows} rows")

    def launched(self) -> Iterator[Launched]:
        """What evidence records of a run; replays of a captured graph are not counted."""
        for one in self.kernels:
            variant, built = one.candidate.variant, one.candidate.built
            if one.launches:
                yield Launched(variant.kernel, variant.id, built.digest, one.launches)
