# SPDX-License-Identifier: Apache-2.0
"""Audits machine code of variants as `fasttrack audit` does, under the contracts of their rows.

Variants that are one cubin are audited once: tensor parallelism and rows choose among variants, and
say nothing of the code.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from fasttrack.audit.approvals import Approvals
from fasttrack.audit.finding import Verdict
from fasttrack.audit.lint import load_contract
from fasttrack.audit.run import Named, Outcome, Source, audit_files
from fasttrack.errors import InputError
from fasttrack.manifest.variants import Variant
from kimi_k3.decode.kernels.build import HERE
from kimi_k3.decode.kernels.catalogue import candidate

ROOT = HERE.parents[2]
"""What the paths of a variant table start from."""


@dataclass(frozen=True)
class Audited:
    """What the audit says of one cubin.

    Attributes:
        digest: of the cubin.
        variants: the rows of the table that it serves.
        outcomes: of its kernels.
    """

    digest: str
    variants: tuple[Variant, ...]
    outcomes: tuple[Outcome, ...]

    @property
    def verdict(self) -> Verdict:
        """The gravest of all kernels."""
        found = {one.audited.verdict for one in self.outcomes} or {Verdict.UNPROVEN}
        return next(
            one for one in (Verdict.VIOLATED, Verdict.UNPROVEN, Verdict.PROVED) if one in found
        )


def audited(kernel: str, variants: Sequence[Variant], cache: Path) -> Iterator[Audited]:
    """Builds variants, and audits each cubin once.

    Args:
        kernel: the folder of their kernel.
        variants: rows of the kernel's table.
        cache: where cubins are kept.

    Raises:
        InputError: a variant does not compile, names no contract, or its contract does not fit.
    """
    same: dict[tuple[str, tuple[str, ...]], list[Variant]] = {}
    code: dict[str, bytes] = {}
    for variant in variants:
        built = candidate(kernel, variant, cache).built
        code[built.digest] = built.cubin
        same.setdefault((built.digest, _contracts(variant)), []).append(variant)
    for (digest, contracts), rows in same.items():
        named = [Named(path, load_contract((ROOT / path).read_bytes(), path)) for path in contracts]
        source = Source(rows[0].id, code[digest])
        yield Audited(
            digest, tuple(rows), audit_files([source], named, Approvals(approvals=1), date.max)
        )


def _contracts(variant: Variant) -> tuple[str, ...]:
    if variant.audit is None:
        raise InputError.one(f"variant {variant.id}", "no `audit`", "its code and its contracts")
    return variant.audit.contracts
