# SPDX-License-Identifier: Apache-2.0
"""Launches cubins as they were built: no compiler is here, and every loaded digest is recorded."""

import ctypes
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from cuda.bindings import driver

from fasttrack.errors import FasttrackError
from kimi_k3.decode.kernels.catalogue import Candidate
from kimi_k3.decode.kernels.layout import misfit
from kimi_k3.decode.kernels.shapes import Operand, Role

PORTABLE_CLUSTER = 8
"""Blocks of the largest cluster that every device has."""
PLAIN_SHARED_BYTES = 48 * 1024
"""Shared memory that a kernel may have without being asked for more."""
SCALARS = {"int32": ctypes.c_int32, "int64": ctypes.c_int64, "fp32": ctypes.c_float}

_loaded: dict[str, str] = {}


class LaunchError(FasttrackError):
    """The driver refused to load or to launch."""


def loaded() -> Mapping[str, str]:
    """SHA-256 of every cubin that this process has loaded, to its kernel's symbol."""
    return dict(_loaded)


class Kernel:
    """One variant on the current device.

    Attributes:
        candidate: what is launched.
        launches: how often it was launched; replays of a captured graph are not counted.
    """

    def __init__(self, candidate: Candidate) -> None:
        """Loads the cubin.

        Args:
            candidate: the variant with its machine code.

        Raises:
            LaunchError: the driver refuses it: another architecture, or too much shared memory.
        """
        self.candidate, self.launches = candidate, 0
        built, shape = candidate.built, candidate.shape
        torch.cuda.current_stream()  # the context is torch's
        library = _done(driver.cuLibraryLoadData(built.cubin, [], [], 0, [], [], 0))
        kernel = _done(driver.cuLibraryGetKernel(library, built.entry.encode()))
        self._function = _done(driver.cuKernelGetFunction(kernel))
        attributes = driver.CUfunction_attribute
        if shape.shared_bytes > PLAIN_SHARED_BYTES:
            name = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            _done(driver.cuFuncSetAttribute(self._function, name, shape.shared_bytes))
        if shape.cluster > PORTABLE_CLUSTER:
            name = attributes.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            _done(driver.cuFuncSetAttribute(self._function, name, 1))
        _loaded[built.digest] = built.entry

    def launch(
        self,
        values: Sequence[torch.Tensor | int],
        rows: int,
        *,
        pdl: bool,
        stream: int | None = None,
    ) -> None:
        """Launches once; allocates nothing and waits for nothing.

        Args:
            values: one for each operand in order, a tensor or its address, or a scalar's number;
                shapes and strides are compiled in.
            rows: of this launch; 0 launches nothing.
            pdl: whether it may begin before the launch before it has ended.
            stream: torch's current one if none is given.

        Raises:
            LaunchError: a tensor is not what was compiled in, or the driver refuses.
        """
        if not rows:
            return
        shape = self.candidate.shape
        config = driver.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = shape.grid_of(rows)
        config.blockDimX, config.blockDimY, config.blockDimZ = shape.block, 1, 1
        config.sharedMemBytes = shape.shared_bytes
        config.hStream = torch.cuda.current_stream().cuda_stream if stream is None else stream
        config.attrs = self._early if pdl else self._attributes
        config.numAttrs = len(config.attrs)
        _done(driver.cuLaunchKernelEx(config, self._function, self._parameters(values), 0))
        self.launches += 1

    def _parameters(self, values: Sequence[torch.Tensor | int]) -> tuple[Any, Any]:
        operands = self.candidate.operands
        if len(values) != len(operands):
            raise LaunchError(f"{len(values)} values; want {len(operands)}")
        numbers = tuple(map(_number, operands, values))
        return numbers, self._types

    @cached_property
    def _types(self) -> tuple[Any, ...]:
        return tuple(map(_type_of, self.candidate.operands))

    @cached_property
    def _attributes(self) -> list[Any]:
        shape, found = self.candidate.shape, []
        # A cluster of one block needs it, too, where the code was compiled for clusters.
        value = driver.CUlaunchAttributeValue()
        value.clusterDim.x, value.clusterDim.y, value.clusterDim.z = shape.cluster, 1, 1
        found.append(_attribute("CLUSTER_DIMENSION", value))
        if shape.cooperative:
            value = driver.CUlaunchAttributeValue()
            value.cooperative = 1
            found.append(_attribute("COOPERATIVE", value))
        return found

    @cached_property
    def _early(self) -> list[Any]:
        value = driver.CUlaunchAttributeValue()
        value.programmaticStreamSerializationAllowed = 1
        return [*self._attributes, _attribute("PROGRAMMATIC_STREAM_SERIALIZATION", value)]


def _number(operand: Operand, value: torch.Tensor | int) -> int:
    if isinstance(value, int):
        return value
    if problem := misfit(operand, value):
        raise LaunchError(problem)
    return value.data_ptr()


def _type_of(operand: Operand) -> Any:
    return SCALARS[operand.dtype] if operand.role is Role.SCALAR else ctypes.c_void_p


def _attribute(name: str, value: Any) -> Any:
    attribute = driver.CUlaunchAttribute()
    attribute.id = getattr(driver.CUlaunchAttributeID, f"CU_LAUNCH_ATTRIBUTE_{name}")
    attribute.value = value
    return attribute


def _done(result: tuple[Any, ...]) -> Any:
    status, *values = result
    if status != driver.CUresult.CUDA_SUCCESS:
        raise LaunchError(f"the driver says {status.name}")
    return values[0] if values else None
