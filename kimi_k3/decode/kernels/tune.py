# SPDX-License-Identifier: Apache-2.0
"""Measures every tiling of the residual mix on a GPU, and makes the variant table of the fastest.

What is timed is the form that a step launches most, with all blocks saved: inputs rotated past the
L2 cache, all launches of a tiling in one CUDA graph, the tilings' graphs in turn. A second range of
rows costs variants, evidence and audits, so that it must save something.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch

from fasttrack.errors import InputError
from fasttrack.manifest.variants import Variant
from kimi_k3.config import full
from kimi_k3.decode.kernels.attn_res.table import TILINGS, Choice, table, table_text
from kimi_k3.decode.kernels.catalogue import Candidate, candidate
from kimi_k3.decode.kernels.launch import Kernel
from kimi_k3.decode.kernels.layout import DTYPES
from kimi_k3.decode.kernels.shapes import ITEM_BYTES, Operand, Role
from kimi_k3.decode.kernels.timing import captured, replay_times

KERNEL, FORM = "attn_res", "add"
ROWS = (1, 2, 4, 8, 16, 32, 64)
"""Each stands for the rows above the one before."""
WORTH = 0.99
"""A second range must bring the time of the rows that it takes down to this share."""
ROTATED_BYTES = 260e6
MOST_SETS, REPLAYS = 1000, 30

Tiling = tuple[int, int]
Times = Mapping[int, Mapping[Tiling, float]]


def require_gpu() -> str:
    """The architecture of the GPU at hand.

    Raises:
        InputError: there is none.
    """
    if not torch.cuda.is_available():
        fix = "tune on such a machine; `kimi-k3 kernels build` and `audit` need no GPU"
        raise InputError.one("kimi-k3 kernels tune", "no GPU", "the GPU to tune for", fix)
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}a"


def candidates(arch: str, cache: Path) -> dict[Tiling, Candidate]:
    """What is compared, built where the cache lacks it.

    Raises:
        InputError: the cache lacks one, and there is no compiler.
    """
    return {tiling: candidate(KERNEL, _variant(arch, tiling), cache) for tiling in TILINGS}


def tuned(arch: str, cache: Path) -> tuple[str, list[str]]:
    """The text of the table, and what was measured, a line for each number of rows."""
    kernels = {tiling: Kernel(one) for tiling, one in candidates(arch, cache).items()}
    times = {rows: timed(kernels, rows) for rows in ROWS}
    lines = [
        f"rows {rows:2}  " + "  ".join(f"{c} x {v}: {us:.2f} us" for (c, v), us in own.items())
        for rows, own in times.items()
    ]
    return table_text(table(full(), choices(times))), lines


def choices(times: Times) -> tuple[Choice, ...]:
    """The tiling of each range of rows: one range, or two where that is worth it.

    Args:
        times: numbers of rows, rising, to microseconds by tiling.
    """
    counts = [*times]
    whole = _best(times, counts)
    splits = [
        {n: _best(times, part) for part in (counts[:at], counts[at:]) for n in part}
        for at in range(1, len(counts))
    ]
    chosen = min(splits, key=lambda one: sum(_share(times, n, one[n]) for n in counts))
    taken = [n for n in counts if chosen[n] != whole]
    if sum(_share(times, n, chosen[n]) for n in taken) >= WORTH * sum(
        _share(times, n, whole) for n in taken
    ):
        return (Choice((1, counts[-1]), *whole),)
    border = max(n for n in counts if chosen[n] == chosen[counts[0]])
    low, high = chosen[counts[0]], chosen[counts[-1]]
    return Choice((1, border), *low), Choice((border + 1, counts[-1]), *high)


def _best(times: Times, counts: Sequence[int]) -> Tiling:
    """The tiling that is fastest over some numbers of rows, each with the same weight."""
    return min(
        times[counts[0]], key=lambda tiling: (sum(_share(times, n, tiling) for n in counts), tiling)
    )


def _share(times: Times, rows: int, tiling: Tiling) -> float:
    """How much longer a tiling takes than the fastest one."""
    return times[rows][tiling] / min(times[rows].values())


def timed(kernels: Mapping[Tiling, Kernel], rows: int) -> dict[Tiling, float]:
    """Median microseconds of a launch, by tiling."""
    operands = next(iter(kernels.values())).candidate.operands
    moved = sum(rows * _row_bytes(one) for one in operands if len(one.shape) > 1)
    sets = [
        _values(operands, rows) for _ in range(max(8, min(MOST_SETS, int(ROTATED_BYTES / moved))))
    ]
    graphs = [captured([_launch(kernel, one, rows) for one in sets]) for kernel in kernels.values()]
    times = replay_times(graphs, REPLAYS)
    return {
        tiling: statistics.median(own) / len(sets)
        for tiling, own in zip(kernels, times, strict=True)
    }


def _variant(arch: str, tiling: Tiling) -> Variant:
    rows = table(full(), [Choice((1, ROWS[-1]), *tiling)])["variants"]
    (found,) = (
        row
        for row in rows
        if (row["arch"], row["tp"], row["kernel"]) == (arch, 8, f"attn-res-{FORM}")
    )
    return Variant(**found | {"rows": tuple(found["rows"]), "audit": None})


def _row_bytes(operand: Operand) -> int:
    elements = 1
    for extent in operand.shape[1:]:
        elements *= extent
    return elements * ITEM_BYTES[operand.dtype]


def _values(operands: Sequence[Operand], rows: int) -> list[torch.Tensor | int]:
    return [
        one.high
        if one.role is Role.SCALAR
        else torch.randn(
            (rows, *one.shape[1:]) if len(one.shape) > 1 else one.shape, device="cuda"
        ).to(DTYPES[one.dtype])
        for one in operands
    ]


def _launch(kernel: Kernel, values: Sequence[torch.Tensor | int], rows: int) -> Callable[[], None]:
    return lambda: kernel.launch(values, rows, pdl=True)
