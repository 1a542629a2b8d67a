# SPDX-License-Identifier: Apache-2.0
"""Holds a contract against its kernel: what the cubin says of it, and what its instructions use."""

from collections.abc import Iterable, Iterator
from math import prod
from re import escape, fullmatch

from fasttrack.audit.contract import Class, Contract, Parameter
from fasttrack.audit.program import Immediate, Kernel

POINTER, DESCRIPTOR = 8, 128
"""Bytes of a pointer and of a TMA descriptor."""

Fault = tuple[str, str, str]
"""Where, what was seen, and what is wanted."""


def matches(name: str, pattern: str) -> bool:
    """Whether a symbol is what a pattern says, in which `*` stands for any characters."""
    return fullmatch(".*".join(map(escape, pattern.split("*"))), name) is not None


def misfits(contract: Contract, kernel: Kernel) -> Iterator[Fault]:
    """Every way in which a contract does not fit its kernel."""
    if not matches(kernel.name, contract.kernel):
        yield "kernel", repr(contract.kernel), f"the kernel's name, {kernel.name!r}"
    if len(contract.parameters) != len(kernel.parameters):
        yield (
            "parameters",
            f"{len(contract.parameters)}",
            f"{len(kernel.parameters)}, as {kernel.name} has",
        )
    threads = prod(contract.block)
    if kernel.threads is not None and threads > kernel.threads:
        yield "block", f"{threads} threads", f"at most {kernel.threads}, as it was compiled for"
    if kernel.block is not None and contract.block != kernel.block:
        yield "block", _shape(contract.block), f"{_shape(kernel.block)}, as it was compiled for"
    if kernel.cluster is not None and contract.cluster != kernel.cluster:
        yield "cluster", f"{contract.cluster} blocks", f"{kernel.cluster}, as it was compiled for"
    for said, real in zip(contract.parameters, kernel.parameters, strict=False):
        yield from _sizes(said, real.size)
    yield from _unused(contract, kernel)


def _unused(contract: Contract, kernel: Kernel) -> Iterator[Fault]:
    """Entries that nothing in the machine code answers to."""
    operands = [one.operands[:1] for one in kernel.instructions if one.opcode == "BAR"]
    ids = {one.value for first in operands for one in first if isinstance(one, Immediate)}
    told = all(isinstance(one, Immediate) for first in operands for one in first)
    for barrier in contract.barriers:
        if told and barrier.id not in ids:
            want = f"a barrier that {kernel.name} uses ({listed(map(str, ids))})"
            yield f"barriers: {barrier.id}", "no such barrier in the machine code", want
    if contract.early_trigger is not None and "PREEXIT" not in {
        one.opcode for one in kernel.instructions
    }:
        yield "early_trigger", "no trigger in the machine code", "no entry, or a trigger"


def _shape(block: tuple[int, int, int]) -> str:
    return " x ".join(map(str, block))


def _sizes(said: Parameter, size: int) -> Iterator[Fault]:
    where = f"parameters: {said.name}"
    if said.descriptor:
        if size != DESCRIPTOR:
            yield where, f"a descriptor of {size} bytes", f"{DESCRIPTOR} bytes"
    elif said.holds == "struct":
        for member in said.fields:
            if member.offset + member.size > size:
                yield f"{where}: {member.name}", "a member past the end", f"{size} bytes in all"
            elif member.holds is not Class.SCALAR and member.size % POINTER:
                yield (
                    f"{where}: {member.name}",
                    f"a pointer of {member.size} bytes",
                    "8, or a table",
                )
    elif said.holds is not Class.SCALAR and size % POINTER:
        yield where, f"{said.holds} of {size} bytes", "a pointer of 8 bytes, or a table of them"


def listed(names: Iterable[str]) -> str:
    """Names for a message."""
    return ", ".join(sorted(names)) or "none"
