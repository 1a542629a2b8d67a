# SPDX-License-Identifier: Apache-2.0
"""The machine that measures, as its driver (NVML) or its kernel describes it."""

import importlib
import os
import platform
from contextlib import suppress
from pathlib import Path
from typing import Any

from fasttrack.errors import InputError
from fasttrack.evidence.predicates.common import Clocks, Machine

GPU_ARCH = "sm_"
"""How the architectures of GPUs begin."""
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_ARCH_SPECIFIC = 9
"""From this major compute capability on, code is built for the `a` variant."""


def measured_machine(hardware: str, arch: str) -> Machine:
    """Facts about this machine.

    Args:
        hardware: hardware id of the policy that the runner speaks for.
        arch: that hardware's architecture; decides whether a GPU or the processor is described.

    Raises:
        InputError: there is no such device, or no way to ask it.
    """
    machine = _gpu(hardware) if arch.startswith(GPU_ARCH) else _processor(hardware)
    if machine.arch != arch:
        saw = f"{machine.device} ({machine.arch})"
        raise InputError.one("--hardware", saw, f"a machine of {hardware} ({arch})")
    return machine


def _processor(hardware: str) -> Machine:
    return Machine(
        hardware=hardware,
        device=_processor_name(),
        arch=platform.machine().lower(),
        count=1,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    )


def _processor_name() -> str:
    with suppress(OSError, UnicodeDecodeError):
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name" and value.strip():
                return value.strip()[:200]
    return platform.processor() or platform.machine()


def _gpu(hardware: str) -> Machine:
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError as error:
        fix = "pip install nvidia-ml-py"
        raise InputError.one("NVML", "no module pynvml", "a way to ask the GPU", fix) from error
    try:
        nvml.nvmlInit()
        try:
            return _asked(nvml, hardware)
        finally:
            nvml.nvmlShutdown()
    except nvml.NVMLError as error:
        raise InputError.one("NVML", str(error), "a GPU that answers") from error


def _asked(nvml: Any, hardware: str) -> Machine:
    devices = _visible(nvml)
    names = sorted({_text(nvml.nvmlDeviceGetName(device)) for device in devices})
    if len(names) != 1:
        saw = ", ".join(names) or "none"
        raise InputError.one("NVML", f"GPUs: {saw}", "GPUs of one kind", f"set {_VISIBLE}")
    device = devices[0]
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(device)
    cuda = int(nvml.nvmlSystemGetCudaDriverVersion_v2())
    return Machine(
        hardware=hardware,
        device=names[0],
        arch=f"{GPU_ARCH}{major}{minor}" + ("a" if major >= _ARCH_SPECIFIC else ""),
        count=len(devices),
        memory_bytes=int(nvml.nvmlDeviceGetMemoryInfo(device).total),
        mig=_is_mig(nvml, device),
        driver=_text(nvml.nvmlSystemGetDriverVersion()),
        cuda=f"{cuda // 1000}.{cuda % 1000 // 10}",
        clocks_mhz=Clocks(
            sm=int(nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM)),
            memory=int(nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_MEM)),
        ),
    )


def _visible(nvml: Any) -> list[Any]:
    """The devices that tests will see: those that CUDA shows, which are all unless told."""
    named = os.environ.get(_VISIBLE)
    if named is None:
        return [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(int(nvml.nvmlDeviceGetCount()))]
    return [
        nvml.nvmlDeviceGetHandleByIndex(int(word))
        if word.isdecimal()
        else nvml.nvmlDeviceGetHandleByUUID(word)
        for word in (part.strip() for part in named.split(","))
        if word
    ]


def _is_mig(nvml: Any, device: Any) -> bool:
    try:
        current, _ = nvml.nvmlDeviceGetMigMode(device)
    except nvml.NVMLError:  # the device knows no such thing
        return False
    return bool(current)


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
