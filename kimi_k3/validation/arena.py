# SPDX-License-Identifier: Apache-2.0
"""Memory that the judge owns and a candidate's process sees.

| transport | what it is | what the candidate's process has |
|---|---|---|
| `shared` | memory of the host | the same pages, for candidates on a processor |
| `ipc` | memory of the device, exported | the same memory |
| `copy` | memory of the host | a copy on the device, fetched before a call and brought back after |

With `copy` the candidate's own process moves the bytes, so what it does between the call and the
copy is not seen: late work (22, 28) and what its allocator left behind (2) are then not ruled out.
"""

import ctypes
import mmap
import os
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from fasttrack.errors import FasttrackError

TRANSPORTS = ("shared", "ipc", "copy")
REFUSED = "exported memory is refused"
"""What a process answers that can not open it."""
HANDLE_BYTES = 64
"""Of an exported memory."""


class IpcRefusedError(FasttrackError):
    """This machine exports no device memory to other processes."""


@dataclass(frozen=True)
class Shared:
    """How a candidate's process finds the memory.

    Attributes:
        transport: one of `TRANSPORTS`.
        size: in bytes.
        handle: of exported memory, hexadecimal.
        descriptors: of pages of the host.
    """

    transport: str
    size: int
    handle: str = ""
    descriptors: tuple[int, ...] = ()


class Arena(Protocol):
    """The judge's end.

    Attributes:
        transport: one of `TRANSPORTS`.
        size: in bytes.
        device: where images of it are, `cpu` or `cuda`.
    """

    transport: str
    size: int
    device: str

    def share(self) -> Shared:
        """What a new process is given."""

    def write(self, image: torch.Tensor) -> None:
        """Puts a whole image there."""

    def read(self) -> torch.Tensor:
        """A copy of what is there."""

    def close(self) -> None:
        """Gives the memory back."""


class HostArena:
    """Pages of the host without a name, seen by whoever inherits their descriptor."""

    device = "cpu"

    def __init__(self, size: int, transport: str = "shared") -> None:
        self.size, self.transport = size, transport
        self._fd = os.memfd_create("arena")
        os.ftruncate(self._fd, size)
        self._pages = mmap.mmap(self._fd, size)
        self._bytes = torch.frombuffer(self._pages, dtype=torch.uint8)

    def share(self) -> Shared:
        """See `Arena`."""
        return Shared(self.transport, self.size, descriptors=(self._fd,))

    def write(self, image: torch.Tensor) -> None:
        """See `Arena`."""
        self._bytes.copy_(image)

    def read(self) -> torch.Tensor:
        """See `Arena`."""
        return self._bytes.clone()

    def close(self) -> None:
        """See `Arena`."""
        del self._bytes
        self._pages.close()
        os.close(self._fd)


class DeviceArena:
    """Memory of the current device that the driver exports."""

    transport = "ipc"
    device = "cuda"

    def __init__(self, size: int) -> None:
        """Allocates it, outside of torch's pool.

        Raises:
            IpcRefusedError: the driver does not export it.
        """
        from cuda.bindings import driver  # noqa: PLC0415  (there is none without a GPU)

        torch.zeros(1, device="cuda")  # the context is torch's
        self.size, self._driver = size, driver
        self._pointer = self._done(driver.cuMemAlloc(size))
        try:
            self._handle = self._done(driver.cuIpcGetMemHandle(self._pointer))
        except IpcRefusedError:
            driver.cuMemFree(self._pointer)
            raise
        self._bytes = over(int(self._pointer), size)

    def share(self) -> Shared:
        """See `Arena`."""
        handle = ctypes.string_at(self._handle.getPtr(), HANDLE_BYTES)
        return Shared(self.transport, self.size, handle.hex())

    def write(self, image: torch.Tensor) -> None:
        """See `Arena`."""
        self._bytes.copy_(image)
        torch.cuda.synchronize()

    def read(self) -> torch.Tensor:
        """See `Arena`."""
        torch.cuda.synchronize()
        return self._bytes.clone()

    def close(self) -> None:
        """See `Arena`."""
        torch.cuda.synchronize()
        del self._bytes
        self._driver.cuMemFree(self._pointer)

    def _done(self, result: tuple[Any, ...]) -> Any:
        status, *values = result
        if status != self._driver.CUresult.CUDA_SUCCESS:
            raise IpcRefusedError(f"the driver says {status.name}")
        return values[0] if values else None


class _Memory:
    """What torch needs to take a device pointer for a tensor's memory."""

    def __init__(self, pointer: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (pointer, False),
            "version": 3,
        }


def over(pointer: int, size: int) -> torch.Tensor:
    """The bytes at a device pointer, as a tensor that does not own them."""
    return torch.as_tensor(_Memory(pointer, size), device="cuda")


def arena(device: str, size: int, transport: str | None = None) -> Arena:
    """Memory for a candidate, exported where that is possible.

    Args:
        device: `cpu` or `cuda`.
        size: in bytes.
        transport: one of `TRANSPORTS`; by default the closest one that the machine has.
    """
    if device == "cpu":
        return HostArena(size)
    if transport != "copy":
        try:
            return DeviceArena(size)
        except IpcRefusedError:
            if transport == "ipc":
                raise
    return HostArena(size, "copy")
