# SPDX-License-Identifier: Apache-2.0
"""What can be validated, by the names of the command line; one line here adds a unit."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fasttrack.errors import InputError
from fasttrack.manifest.variants import Variant
from kimi_k3.decode.kernels import catalogue
from kimi_k3.decode.kernels.build import HERE, cached, parameters_of
from kimi_k3.decode.kernels.shapes import Role
from kimi_k3.validation.candidate import Candidate, KernelIdentity, MachineCode
from kimi_k3.validation.controls.candidates import controls, honest_candidate

ROOT = Path(__file__).resolve().parents[2]
STOCK = {"attn-res": "kimi_k3.validation.baseline:attn_res"}
"""Operator to the entry of the stock path's program."""


@dataclass(frozen=True)
class Subject:
    """A candidate, and what it is timed beside.

    Attributes:
        candidate: who is judged.
        baseline: the stock path's program for the same operands, or None.
    """

    candidate: Candidate
    baseline: Candidate | None


def variants(kernel: str, operator: str, arch: str, cache: Path) -> Iterator[Subject]:
    """The variants of a kernel for one architecture, each machine code once.

    Args:
        kernel: its folder.
        operator: what it computes.
        arch: `sm_90a`, of the device.
        cache: where cubins are kept.

    Raises:
        InputError: a cubin is in no cache.
    """
    met: set[str] = set()
    for row in catalogue.table(kernel).variants:
        if row.arch != arch:
            continue
        built = cached(kernel, row, cache)
        if built is None:
            raise InputError.one(
                f"variant {row.id}", f"no cubin in {cache}", "one", "kimi-k3 kernels build"
            )
        if built.digest not in met:
            met.add(built.digest)
            yield _subject(of_variant(kernel, operator, row, cache))


def of_variant(kernel: str, operator: str, row: Variant, cache: Path) -> Candidate:
    """A variant as a candidate.

    Args:
        kernel: its folder.
        operator: what it computes.
        row: of the kernel's table.
        cache: where its cubin is kept.

    Raises:
        InputError: it is in no cache and can not be compiled.
    """
    found = catalogue.candidate(kernel, row, cache)
    parameters = parameters_of(row)
    contract = b""
    if row.audit is not None and row.audit.contracts:
        contract = (ROOT / row.audit.contracts[0]).read_bytes()
    built = found.built
    return Candidate(
        name=row.id,
        operator=operator,
        entry="kimi_k3.validation.cubins:program",
        arguments=arguments_of(kernel, row, cache),
        operands=found.operands,
        rows=row.rows,
        constants={"eps": float(parameters["eps"])},
        kernels=(KernelIdentity(built.entry, built.digest),),
        device="cuda",
        classes=_classes(contract, row.id),
        code=MachineCode(f"{row.id}.cubin", built.cubin, contract, built.digest),
        sources=[str(path) for path in (HERE / kernel).glob("*.py")],
    )


def arguments_of(kernel: str, row: Variant, cache: Path) -> dict[str, Any]:
    """A variant as `cubins.program` takes it; every key of the row goes along, null or not."""
    return {
        "kernel": kernel,
        "variant": row.model_dump(mode="json"),
        "cache": str(cache.resolve()),
    }


def stand_ins(_arch: str, _cache: Path) -> Iterator[Subject]:
    """The honest candidates of the controls: plain PyTorch, on a processor."""
    for name in controls().honest:
        yield _subject(honest_candidate(name))


def attn_res(arch: str, cache: Path) -> Iterator[Subject]:
    """The residual mix."""
    return variants("attn_res", "attn-res", arch, cache)


UNITS: Mapping[str, Callable[[str, Path], Iterator[Subject]]] = {
    "attn-res": attn_res,
    "stand-ins": stand_ins,
}
ON_CPU = ("stand-ins",)
"""Units that need no GPU."""


def _subject(candidate: Candidate) -> Subject:
    mailbox = any(one.role is Role.MAILBOX for one in candidate.memory)
    entry = STOCK.get(candidate.operator)
    if entry is None or mailbox:
        return Subject(candidate, None)
    arguments = {"eps": candidate.constants["eps"], "device": candidate.device}
    return Subject(candidate, _replaced(candidate, entry, arguments))


def _replaced(candidate: Candidate, entry: str, arguments: dict[str, object]) -> Candidate:
    return Candidate(
        name=f"stock beside {candidate.name}",
        operator=candidate.operator,
        entry=entry,
        arguments=arguments,
        operands=candidate.operands,
        rows=candidate.rows,
        constants=candidate.constants,
        kernels=(),
        device=candidate.device,
    )


def _classes(contract: bytes, name: str) -> Mapping[str, str]:
    if not contract:
        return {}
    from fasttrack.audit.lint import load_contract  # noqa: PLC0415  (a large package)

    return {one.name: str(one.holds) for one in load_contract(contract, name).parameters}
