# SPDX-License-Identifier: Apache-2.0
"""Controls in the CuTe DSL: `fasttrack audit tests/audit/controls/dsl/kernels.py`; needs the DSL.

What each must be judged as is in `kernels.yaml`. Their cubins are stored, made by
`python -m tests.audit.controls.dsl build`.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import cuda.bindings.driver as cuda
import cutlass
from cutlass import cute
from cutlass._mlir.dialects import llvm
from cutlass.cute.nvgpu import CopyG2ROp, cpasync
from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream, make_ptr

THREADS = 128
TILE = (32, 16)
GLOBAL = cute.AddressSpace.gmem


class Rows(NamedTuple):
    """Tensors that go to a kernel together."""

    w: cute.Tensor
    x: cute.Tensor


@cute.jit
def here() -> cutlass.Int32:
    """The element of this thread."""
    return cute.arch.block_idx()[0] * THREADS + cute.arch.thread_idx()[0]


@cute.jit
def four(of: cute.Tensor, invariant: cutlass.Constexpr) -> Any:
    """Four elements of this thread; `invariant` promises that nobody writes them meanwhile."""
    atom = cute.make_copy_atom(
        CopyG2ROp(), cutlass.Float32, num_bits_per_copy=128, invariant=invariant
    )
    part = cute.local_tile(of, (4,), (here(),))
    found = cute.make_rmem_tensor((4,), cutlass.Float32)
    cute.copy(atom, part, found)
    return found


@cute.kernel
def reads_after(w: cute.Tensor, x: cute.Tensor, y: cute.Tensor) -> None:
    """Only what is static is read before the wait."""
    scale = w[here()]
    cute.arch.griddepcontrol_wait()
    y[here()] = x[here()] * scale
    cute.arch.sync_threads()
    cute.arch.griddepcontrol_launch_dependents()


@cute.kernel
def reads_before(w: cute.Tensor, x: cute.Tensor, y: cute.Tensor) -> None:
    """An activation is read before the wait."""
    row = x[here()]
    cute.arch.griddepcontrol_wait()
    y[here()] = row * w[here()]


@cute.kernel
def triggers_early(w: cute.Tensor, x: cute.Tensor, y: cute.Tensor) -> None:
    """The next kernel may begin while this one still reads and writes."""
    cute.arch.griddepcontrol_wait()
    cute.arch.griddepcontrol_launch_dependents()
    y[here()] = x[here()] * w[here()]


@cute.kernel
def wait_is_pure(w: cute.Tensor, x: cute.Tensor, y: cute.Tensor) -> None:
    """The wait is said to have no effects, so the compiler deletes it."""
    llvm.inline_asm(
        res=None, operands_=[], asm_string="griddepcontrol.wait;", constraints="",
        has_side_effects=False, asm_dialect=llvm.AsmDialect.AD_ATT,
    )  # fmt: skip
    y[here()] = x[here()] * w[here()]


@cute.kernel
def invariant_after(w: cute.Tensor, x: cute.Tensor, y: cute.Tensor) -> None:
    """All threads wait, and then promise that nobody writes what they read."""
    cute.arch.griddepcontrol_wait()
    row = four(x, True)
    y[here()] = row[0] + row[1] + row[2] + row[3] + w[here()]


@cute.kernel
def invariant_static(w: cute.Tensor, x: cute.Tensor, y: cute.Tensor) -> None:
    """That promise of what is static, which it holds for."""
    row = four(w, True)
    cute.arch.griddepcontrol_wait()
    y[here()] = row[0] + row[1] + row[2] + row[3] + x[here()]


@cute.kernel
def warp_waits_invariant(w: cute.Tensor, x: cute.Tensor, y: cute.Tensor) -> None:
    """One warp waits for all; the compiler moves the promised load above the barrier."""
    if cute.arch.warp_idx() == 0:
        cute.arch.griddepcontrol_wait()
    cute.arch.sync_threads()
    row = four(x, True)
    y[here()] = row[0] + row[1] + row[2] + row[3]


@cute.kernel
def warp_waits_plain(w: cute.Tensor, x: cute.Tensor, y: cute.Tensor) -> None:
    """The same with a plain load, which stays where it is."""
    if cute.arch.warp_idx() == 0:
        cute.arch.griddepcontrol_wait()
    cute.arch.sync_threads()
    row = four(x, False)
    y[here()] = row[0] + row[1] + row[2] + row[3]


@cute.kernel
def elected_waits(w: cute.Tensor, x: cute.Tensor, y: cute.Tensor) -> None:
    """An elected thread of the first warp waits, and a named barrier tells the others."""
    if cute.arch.warp_idx() == 0:
        with cute.arch.elect_one():
            cute.arch.griddepcontrol_wait()
    cute.arch.barrier(barrier_id=1, number_of_threads=THREADS)
    y[here()] = x[here()] * w[here()]


@cute.kernel
def waits_in_first(w: cute.Tensor, x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32) -> None:
    """The wait is in the first round of a loop of unknown length, before the read."""
    total = cutlass.Float32(0)
    for k in range(n):
        scale = w[here() + k * THREADS]
        if k == 0:
            cute.arch.griddepcontrol_wait()
        total += scale * x[here() + k * THREADS]
    cute.arch.griddepcontrol_wait()
    y[here()] = total


@cute.kernel
def waits_in_second(w: cute.Tensor, x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32) -> None:
    """The wait is in the second round, after the first one's read."""
    total = cutlass.Float32(0)
    for k in range(n):
        if k == 1:
            cute.arch.griddepcontrol_wait()
        total += w[here() + k * THREADS] * x[here() + k * THREADS]
    cute.arch.griddepcontrol_wait()
    y[here()] = total


@cute.kernel
def rows_after(rows: Rows, y: cute.Tensor) -> None:
    """Tensors out of a tuple, in order."""
    scale = rows.w[here()]
    cute.arch.griddepcontrol_wait()
    y[here()] = rows.x[here()] * scale


@cute.kernel
def rows_before(rows: Rows, y: cute.Tensor) -> None:
    """Tensors out of a tuple; the wrong one is read early."""
    row = rows.x[here()]
    cute.arch.griddepcontrol_wait()
    y[here()] = row * rows.w[here()]


@cute.kernel
def pointers_after(
    w: cute.Pointer, x: cute.Pointer, y: cute.Pointer, second: cutlass.Int32
) -> None:
    """Bare pointers; which of two is read is not known, and it is read in time."""
    cute.arch.griddepcontrol_wait()
    chosen = w
    if second != 0:
        chosen = x
    cute.make_tensor(y, 1024)[here()] = cute.make_tensor(chosen, 1024)[here()]


@cute.kernel
def pointers_before(
    w: cute.Pointer, x: cute.Pointer, y: cute.Pointer, second: cutlass.Int32
) -> None:
    """Bare pointers; one of the two may not be read yet."""
    chosen = w
    if second != 0:
        chosen = x
    row = cute.make_tensor(chosen, 1024)[here()]
    cute.arch.griddepcontrol_wait()
    cute.make_tensor(y, 1024)[here()] = row


@cute.jit
def spin(flag: cute.Pointer, epoch: cutlass.Int32, sem: cutlass.Constexpr) -> None:
    """Waits until the flag has come to the epoch."""
    seen = cute.arch.load(flag, cutlass.Int32, sem=sem, scope="sys")
    while seen < epoch:
        seen = cute.arch.load(flag, cutlass.Int32, sem=sem, scope="sys")


@cute.kernel
def takes_acquired(
    box: cute.Pointer, flag: cute.Pointer, y: cute.Pointer, epoch: cutlass.Int32
) -> None:
    """A mailbox is read behind an acquire of its flag."""
    spin(flag, epoch, "acquire")
    cute.make_tensor(y, 1024)[here()] = cute.make_tensor(box, 1024)[here()]


@cute.kernel
def takes_relaxed(
    box: cute.Pointer, flag: cute.Pointer, y: cute.Pointer, epoch: cutlass.Int32
) -> None:
    """A mailbox is read behind a spin that orders nothing."""
    spin(flag, epoch, "relaxed")
    cute.make_tensor(y, 1024)[here()] = cute.make_tensor(box, 1024)[here()]


@cute.kernel
def sends_released(
    box: cute.Pointer, flag: cute.Pointer, y: cute.Pointer, epoch: cutlass.Int32
) -> None:
    """All threads fill a mailbox, meet, and one releases its flag."""
    cute.make_tensor(y, 1024)[here()] = cute.make_tensor(box, 1024)[here()]
    cute.arch.sync_threads()
    if cute.arch.thread_idx()[0] == 0:
        cute.arch.store(flag, epoch, sem="release", scope="sys")


@cute.kernel
def sends_alone(
    box: cute.Pointer, flag: cute.Pointer, y: cute.Pointer, epoch: cutlass.Int32
) -> None:
    """One thread releases the flag before the others have filled their part."""
    cute.make_tensor(y, 1024)[here()] = cute.make_tensor(box, 1024)[here()]
    if cute.arch.thread_idx()[0] == 0:
        cute.arch.store(flag, epoch, sem="release", scope="sys")


@cute.kernel
def copies_after(atom: cute.CopyAtom, x: cute.Tensor, y: cute.Tensor) -> None:
    """The copy engine fetches a tile behind the wait."""
    copy_tile(atom, x, y, True)


@cute.kernel
def copies_before(atom: cute.CopyAtom, x: cute.Tensor, y: cute.Tensor) -> None:
    """The copy engine fetches a tile before the wait."""
    copy_tile(atom, x, y, False)


@cute.jit
def copy_tile(
    atom: cute.CopyAtom, x: cute.Tensor, y: cute.Tensor, in_time: cutlass.Constexpr
) -> None:
    """A tile goes through shared memory."""
    memory = cutlass.utils.SmemAllocator()
    tile = memory.allocate_tensor(cutlass.Float32, cute.make_layout(TILE), 128)
    full = memory.allocate_array(cutlass.Int64, 1)
    if cute.arch.warp_idx() == 0:
        with cute.arch.elect_one():
            cute.arch.mbarrier_init(full, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    if cutlass.const_expr(in_time):
        cute.arch.griddepcontrol_wait()
    parts = cute.zipped_divide(x, TILE)
    near, far = cpasync.tma_partition(
        atom, 0, cute.make_layout(1), cute.group_modes(tile, 0, 2), parts
    )
    if cute.arch.warp_idx() == 0:
        with cute.arch.elect_one():
            cute.arch.mbarrier_arrive_and_expect_tx(full, 4 * cute.size(TILE))
        cute.copy(atom, far[(None, cute.arch.block_idx()[0])], near, tma_bar_ptr=full)
    if cutlass.const_expr(not in_time):
        cute.arch.griddepcontrol_wait()
    cute.arch.mbarrier_wait(full, 0)
    y[here()] = tile[cute.arch.thread_idx()[0]]


@cute.jit
def tensors(
    kernels: cutlass.Constexpr,
    w: cute.Tensor,
    x: cute.Tensor,
    y: cute.Tensor,
    stream: cuda.CUstream,
) -> None:
    """Launches kernels over three tensors."""
    for at in cutlass.range_constexpr(len(kernels)):
        kernels[at](w, x, y).launch(
            grid=(8, 1, 1), block=(THREADS, 1, 1), stream=stream, use_pdl=True
        )


@cute.jit
def counted(
    kernels: cutlass.Constexpr,
    w: cute.Tensor,
    x: cute.Tensor,
    y: cute.Tensor,
    n: cutlass.Int32,
    stream: cuda.CUstream,
) -> None:
    """Launches kernels over three tensors and a number."""
    for at in cutlass.range_constexpr(len(kernels)):
        kernels[at](w, x, y, n).launch(
            grid=(8, 1, 1), block=(THREADS, 1, 1), stream=stream, use_pdl=True
        )


@cute.jit
def tupled(
    kernels: cutlass.Constexpr,
    w: cute.Tensor,
    x: cute.Tensor,
    y: cute.Tensor,
    stream: cuda.CUstream,
) -> None:
    """Launches kernels over two tensors in a tuple, and one."""
    for at in cutlass.range_constexpr(len(kernels)):
        kernels[at](Rows(w, x), y).launch(
            grid=(8, 1, 1), block=(THREADS, 1, 1), stream=stream, use_pdl=True
        )


@cute.jit
def pointed(
    kernels: cutlass.Constexpr,
    a: cute.Pointer,
    b: cute.Pointer,
    y: cute.Pointer,
    n: cutlass.Int32,
    stream: cuda.CUstream,
) -> None:
    """Launches kernels over three pointers and a number."""
    for at in cutlass.range_constexpr(len(kernels)):
        kernels[at](a, b, y, n).launch(
            grid=(8, 1, 1), block=(THREADS, 1, 1), stream=stream, use_pdl=True
        )


@cute.jit
def tiled(
    kernels: cutlass.Constexpr, x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream
) -> None:
    """Launches kernels that fetch tiles."""
    atom, coordinates = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileG2SOp(), x, cute.make_layout(TILE), TILE
    )
    for at in cutlass.range_constexpr(len(kernels)):
        kernels[at](atom, coordinates, y).launch(
            grid=(8, 1, 1), block=(THREADS, 1, 1), stream=stream, use_pdl=True
        )


def _tensor(*shape: int) -> Any:
    order = tuple(range(len(shape)))
    return make_fake_compact_tensor(cutlass.Float32, shape, stride_order=order, assumed_align=16)


def _pointer(kind: Any = cutlass.Float32) -> Any:
    return make_ptr(kind, 16, GLOBAL, assumed_align=16)


def audit_targets() -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """What is compiled."""
    stream = make_fake_stream()
    three = (_tensor(65536), _tensor(65536), _tensor(65536))
    number = cutlass.Int32(4)
    yield tensors, (
        (
            reads_after, reads_before, triggers_early, wait_is_pure, invariant_after,
            invariant_static, warp_waits_invariant, warp_waits_plain, elected_waits,
        ), *three, stream,
    )  # fmt: skip
    yield counted, ((waits_in_first, waits_in_second), *three, number, stream)
    yield tupled, ((rows_after, rows_before), *three, stream)
    pointers = (_pointer(), _pointer(), _pointer())
    yield pointed, ((pointers_after, pointers_before), *pointers, number, stream)
    boxes = (takes_acquired, takes_relaxed, sends_released, sends_alone)
    yield pointed, (boxes, _pointer(), _pointer(cutlass.Int32), _pointer(), number, stream)
    yield tiled, ((copies_after, copies_before), _tensor(32, 256), _tensor(65536), stream)


def _contract(name: str, **holds: str) -> dict[str, Any]:
    """The contract of a kernel over these parameters; a flag or mailbox comes without PDL."""
    parameters: list[dict[str, Any]] = [
        {"name": key, "holds": words.split()[0]}
        | ({"descriptor": True} if "descriptor" in words else {})
        | ({"after": "flag", "rounds": 1} if "mailbox" in words else {})
        | ({"scope": "sys"} if "flag" in words else {})
        for key, words in holds.items()
    ]
    written = ("out", "flag") if "sends" in name else ("out",)
    pointers = [one for one in parameters if one["holds"] != "scalar"]
    document = {
        "contract": 1, "kernel": f"kernel_cutlass_{name}_*", "block": [THREADS, 1, 1],
        "cluster": 1, "pdl": "flag" not in holds, "parameters": parameters,
        "reads": [one["name"] for one in pointers if one["holds"] not in written],
        "writes": [one["name"] for one in pointers if one["holds"] in written],
    }  # fmt: skip
    barriers = {"barriers": [{"id": 1, "threads": THREADS}]} if name == "elected_waits" else {}
    return document | barriers


ROWS = {"w": "static", "x": "dynamic", "y": "out"}
RECEIVED = {"box": "mailbox", "flag": "flag", "y": "out", "epoch": "scalar"}
SENT = {"rows": "static", "flag": "flag", "y": "out", "epoch": "scalar"}
CONTRACTS = [
    *(
        _contract(name, **ROWS)
        for name in (
            "reads_after", "reads_before", "triggers_early", "wait_is_pure", "invariant_after",
            "invariant_static", "warp_waits_invariant", "warp_waits_plain", "elected_waits",
            "rows_after", "rows_before",
        )
    ),
    *(_contract(name, **ROWS, n="scalar") for name in ("waits_in_first", "waits_in_second")),
    *(_contract(name, **ROWS, second="scalar") for name in ("pointers_after", "pointers_before")),
    *(_contract(name, **RECEIVED) for name in ("takes_acquired", "takes_relaxed")),
    *(_contract(name, **SENT) for name in ("sends_released", "sends_alone")),
    *(
        _contract(name, x="dynamic descriptor", y="out")
        for name in ("copies_after", "copies_before")
    ),
]  # fmt: skip
