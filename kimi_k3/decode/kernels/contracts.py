# SPDX-License-Identifier: Apache-2.0
"""The contracts of variants for the audit, made of what a launch of them takes.

They lie beside the kernel as files, so that people read them and a change of one is seen.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from fasttrack.manifest.variants import Variant
from kimi_k3.decode.kernels.build import parameters_of
from kimi_k3.decode.kernels.catalogue import (
    early_trigger,
    launch_shape,
    operands,
    table,
)
from kimi_k3.decode.kernels.registry import KERNELS
from kimi_k3.decode.kernels.shapes import LaunchShape, Operand, Role

CLASSES = {Role.STATIC: "static", Role.IN: "dynamic", Role.OUT: "out", Role.SCALAR: "scalar"}
"""Roles that say all that the audit wants to know."""


HEADER = (
    "# SPDX-License-Identifier: Apache-2.0\n# Made by scripts/generate.py of the variant table.\n"
)


def contract_files() -> Mapping[str, str]:
    """Path to content of every contract that a variant table names.

    Raises:
        ValueError: variants whose launches differ name one contract.
    """
    found: dict[str, str] = {}
    for kernel in KERNELS:
        for variant in table(kernel).variants:
            text = _text(kernel, variant)
            for path in variant.audit.contracts if variant.audit else ():
                if found.setdefault(path, text) != text:
                    raise ValueError(f"{path} is to be of variants that differ, {variant.id} one")
    return found


def _text(kernel: str, variant: Variant) -> str:
    parameters = parameters_of(variant)
    symbol = f"*{kernel}*"
    shape, given = launch_shape(kernel, parameters), operands(kernel, parameters)
    contract = contract_of(symbol, shape, given, early_trigger(kernel))
    return HEADER + yaml.safe_dump(contract, sort_keys=False, width=96, default_flow_style=None)


def contract_of(
    symbol: str, shape: LaunchShape, operands: tuple[Operand, ...], early: str
) -> dict[str, Any]:
    """A contract as its file has it.

    Args:
        symbol: the kernel's, with `*` for any characters.
        shape: how it is launched.
        operands: its parameters in order.
        early: why the next launch may start before this one has ended; empty if it may not.
    """
    read, written = [*_read(operands)], [*_written(operands)]
    return {
        "contract": 1,
        "kernel": symbol,
        "block": [shape.block, 1, 1],
        "cluster": shape.cluster,
        "pdl": True,
        "parameters": [dict(_parameter(one)) for one in operands],
        "reads": read,
        "writes": written,
    } | ({"early_trigger": early} if early else {})


def _parameter(operand: Operand) -> Mapping[str, Any]:
    found: dict[str, Any] = {"name": operand.name}
    if operand.role is Role.MAILBOX:
        return found | {"holds": "mailbox", "sentinel": True}
    if operand.name == "counter":
        return found | {"holds": "metadata"}
    return found | {"holds": CLASSES[operand.role]}


def _read(operands: tuple[Operand, ...]) -> Iterator[str]:
    reads = {Role.STATIC, Role.IN, Role.INOUT, Role.MAILBOX}
    return (one.name for one in operands if one.role in reads)


def _written(operands: tuple[Operand, ...]) -> Iterator[str]:
    writes = {Role.OUT, Role.INOUT, Role.MAILBOX}
    return (one.name for one in operands if one.role in writes)
