# SPDX-License-Identifier: Apache-2.0
"""What a machine is said to be, with a driver that answers as it is told."""

import platform
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from fasttrack.errors import InputError
from fasttrack.evidence.machine import measured_machine
from fasttrack.evidence.predicates.common import Clocks, Machine

ARCH = platform.machine().lower()


class NvmlError(Exception):
    """What the driver raises."""


class Nvml(SimpleNamespace):
    """Two H200, or what else is told."""

    NVMLError = NvmlError
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2

    def __init__(self, **told: Any) -> None:
        usual = {"names": [b"NVIDIA H200", "NVIDIA H200"], "mig": NvmlError(), "sm": (9, 0)}
        super().__init__(**(usual | {"fault": None, "open": 0} | told))

    def nvmlInit(self) -> None:
        if self.fault:
            raise self.fault
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:
        return len(self.names)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        if index >= len(self.names):
            raise NvmlError("Invalid Argument")
        return index

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> int:
        return self.nvmlDeviceGetHandleByIndex(int(uuid.removeprefix("GPU-")))

    def nvmlDeviceGetName(self, device: int) -> Any:
        return self.names[device]

    def nvmlDeviceGetCudaComputeCapability(self, device: int) -> tuple[int, int]:
        return self.sm  # type: ignore[no-any-return]

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return 12080

    def nvmlSystemGetDriverVersion(self) -> bytes:
        return b"570.86.15"

    def nvmlDeviceGetMemoryInfo(self, device: int) -> Any:
        return SimpleNamespace(total=150_754_820_096)

    def nvmlDeviceGetClockInfo(self, device: int, which: int) -> int:
        return {1: 1980, 2: 3201}[which]

    def nvmlDeviceGetMigMode(self, device: int) -> tuple[int, int]:
        if isinstance(self.mig, Exception):
            raise self.mig
        return self.mig, self.mig


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def put(**told: Any) -> Nvml:
        nvml = Nvml(**told)
        monkeypatch.setitem(sys.modules, "pynvml", nvml)
        return nvml

    return put


def test_a_gpu_is_what_its_driver_says(driver: Any) -> None:
    nvml = driver()
    assert measured_machine("h200", "sm_90a") == Machine(
        hardware="h200",
        device="NVIDIA H200",
        arch="sm_90a",
        count=2,
        memory_bytes=150_754_820_096,
        driver="570.86.15",
        cuda="12.8",
        clocks_mhz=Clocks(sm=1980, memory=3201),
    )
    assert nvml.open == 0


@pytest.mark.parametrize(("mode", "mig"), [(1, True), (0, False)])
def test_a_slice_is_told_from_a_whole_gpu(driver: Any, mode: int, mig: bool) -> None:
    driver(mig=mode)
    assert measured_machine("h200", "sm_90a").mig is mig


@pytest.mark.parametrize(
    ("sm", "arch"), [((8, 0), "sm_80"), ((8, 9), "sm_89"), ((10, 0), "sm_100a")]
)
def test_an_architecture_is_named_as_code_is_built_for_it(
    driver: Any, sm: tuple[int, int], arch: str
) -> None:
    driver(sm=sm)
    assert measured_machine("gpu", arch).arch == arch
    with pytest.raises(InputError, match=rf"saw NVIDIA H200 \({arch}\); want .*h200 \(sm_90a\)"):
        measured_machine("h200", "sm_90a")


@pytest.mark.parametrize(("visible", "count"), [("1", 1), ("0,1", 2), ("GPU-1", 1), (" 0 ,", 1)])
def test_only_devices_that_tests_see_count(
    driver: Any, monkeypatch: pytest.MonkeyPatch, visible: str, count: int
) -> None:
    driver()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert measured_machine("h200", "sm_90a").count == count


@pytest.mark.parametrize(
    ("told", "visible", "message"),
    [
        ({"fault": NvmlError("Driver Not Loaded")}, None, "Driver Not Loaded"),
        ({"names": []}, None, "GPUs: none"),
        ({"names": ["NVIDIA H200", "NVIDIA L4"]}, None, "GPUs: NVIDIA H200, NVIDIA L4"),
        ({}, "", "GPUs: none"),
        ({}, "7", "Invalid Argument"),
    ],
)
def test_a_gpu_that_does_not_answer_is_no_machine(
    driver: Any, monkeypatch: pytest.MonkeyPatch, told: Any, visible: str | None, message: str
) -> None:
    nvml = driver(**told)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with pytest.raises(InputError, match=message):
        measured_machine("h200", "sm_90a")
    assert nvml.open == 0


def test_without_the_driver_s_module_the_message_names_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(InputError, match="pip install nvidia-ml-py"):
        measured_machine("h200", "sm_90a")


def test_a_processor_is_what_the_system_says() -> None:
    machine = measured_machine("here", ARCH)
    assert (machine.hardware, machine.arch, machine.count) == ("here", ARCH, 1)
    assert machine.device
    assert machine.memory_bytes > 1 << 28
    assert (machine.driver, machine.clocks_mhz, machine.mig) == (None, None, False)


def test_another_processor_is_refused() -> None:
    with pytest.raises(InputError, match=r"want a machine of there \(riscv128\)"):
        measured_machine("there", "riscv128")
