# SPDX-License-Identifier: Apache-2.0
"""A candidate's end of the memory that the judge owns."""

import ctypes
import mmap
from typing import Any

import torch

from kimi_k3.decode.kernels.layout import DTYPES
from kimi_k3.validation.arena import HANDLE_BYTES, REFUSED, Shared, over


class Attached:
    """The memory in this process.

    Attributes:
        bytes: all of it, on the candidate's device.
    """

    def __init__(self, shared: Shared) -> None:
        """Maps it, opens it, or makes room for a copy.

        Raises:
            RuntimeError: the driver refuses the exported memory.
        """
        self._host: torch.Tensor | None = None
        if shared.transport == "ipc":
            self.bytes = _opened(shared)
            return
        pages = mmap.mmap(shared.descriptors[0], shared.size)
        host = torch.frombuffer(pages, dtype=torch.uint8)
        if shared.transport == "shared":
            self.bytes = host
            return
        torch.cuda.cudart().cudaHostRegister(host.data_ptr(), shared.size, 0)
        self._host, self.bytes = host, torch.empty_like(host, device="cuda")

    def fetch(self) -> None:
        """Has what the judge wrote."""
        if self._host is not None:
            self.bytes.copy_(self._host)
            torch.cuda.synchronize()

    def bring(self) -> None:
        """Lets the judge read, once the device is idle."""
        if self.bytes.is_cuda:
            torch.cuda.synchronize()
        if self._host is not None:
            self._host.copy_(self.bytes)

    def operand(self, place: dict[str, Any]) -> torch.Tensor:
        """An operand as a tensor over this memory.

        Args:
            place: `dtype`, `shape`, `strides` in values and `offset` in bytes.
        """
        dtype = DTYPES[place["dtype"]]
        last = sum((n - 1) * s for n, s in zip(place["shape"], place["strides"], strict=True))
        end = place["offset"] + (last + 1) * dtype.itemsize
        flat = self.bytes[place["offset"] : end].view(dtype)
        return flat.as_strided(place["shape"], place["strides"], flat.storage_offset())


def _opened(shared: Shared) -> torch.Tensor:
    from cuda.bindings import driver  # noqa: PLC0415  (there is none without a GPU)

    torch.zeros(1, device="cuda")  # the context is torch's
    handle = driver.CUipcMemHandle()
    ctypes.memmove(handle.getPtr(), bytes.fromhex(shared.handle), HANDLE_BYTES)
    lazily = driver.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.value
    status, pointer = driver.cuIpcOpenMemHandle(handle, lazily)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"{REFUSED}: {status.name}")
    return over(int(pointer), shared.size)
