# SPDX-License-Identifier: Apache-2.0
"""The device that candidates run on, as far as a verdict needs it."""

from dataclasses import dataclass

import torch

from kimi_k3.decode.packaged import packaged_policy


@dataclass(frozen=True)
class Machine:
    """A device.

    Attributes:
        device: `cpu` or `cuda`.
        name: as its driver has it.
        arch: `sm_90a`; empty for a processor.
        peak_tb_s: bandwidth of its data sheet, or None where the policy has none.
    """

    device: str
    name: str
    arch: str
    peak_tb_s: float | None


def machine(device: str) -> Machine:
    """What is here.

    Args:
        device: `cpu` or `cuda`.
    """
    if device == "cpu":
        return Machine("cpu", "a processor", "", None)
    major, minor = torch.cuda.get_device_capability()
    name = torch.cuda.get_device_name()
    policy = packaged_policy()
    product = policy.hardware.get(policy.hardware_id(name))
    bandwidth = None if product is None else product.bandwidth_tb_s
    peak = None if bandwidth is None else bandwidth.peak
    return Machine("cuda", name, f"sm_{major}{minor}a", peak)
