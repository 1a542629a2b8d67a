# SPDX-License-Identifier: Apache-2.0
"""FT535: contracts of audited kernels are not loosened unseen."""

import ast
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fasttrack.case import Case
from fasttrack.change.tree import Tree
from fasttrack.config import judged_or_head
from fasttrack.errors import FactUnavailable, InputError
from fasttrack.finding import Finding, Level
from fasttrack.manifest.model import Manifest
from fasttrack.manifest.variants import Variant, load_variant_table
from fasttrack.rules.base import Rule
from fasttrack.rules.manifest.edited import Subject, subjects

if TYPE_CHECKING:
    from fasttrack.audit.contract import Contract

MAX_FINDINGS = 20
"""Findings on one manifest; nobody reads more."""


@dataclass(frozen=True)
class Said:
    """A contract of machine code that is audited.

    Attributes:
        path: the file that holds it.
        kernel: the unit's kernel whose row of the variant table names that file.
        contract: what it says; None where a module calculates it.
        text: of a module that does, how.
    """

    path: str
    kernel: str
    contract: "Contract | None"
    text: str = ""


class LoosenedContract(Rule):
    """Contracts that promise more, or demand less, than those of the target branch."""

    id = "FT535"
    slug = "loosened-contract"
    title = "contracts of audited kernels are not loosened unseen"
    level = Level.ROUTE
    waivable = False
    refuses = (
        "A contract of audited machine code that says anew that memory is static, that a kernel is "
        "not launched early, that an early trigger is safe, which flag guards or announces what, "
        "or how many threads meet; or that no longer says that memory changes or is read anew. "
        "Also contracts that a module calculates, where that is changed."
    )
    why = (
        "An audit proves a kernel under its contract, and takes the contract's word. A wrong word "
        "proves a kernel that reads too early, and new evidence would say so in good faith."
    )
    blind = (
        "Whether a contract is true. The first contract of a kernel, new parameters, and functions "
        "outside of `CONTRACTS` by which a module calculates its contracts."
    )
    fix = "have someone who knows the launches around the kernel say that it is so"

    def check(self, case: Case) -> Iterator[Finding]:
        """Compares the contracts of both sides, manifest by manifest."""
        for subject in subjects(case):
            if subject.base is not None and any(u.variants for u in subject.head.units):
                try:
                    yield from self._manifest(case, subject)
                except FactUnavailable as reason:
                    yield self.could_not_tell(reason, subject.path)

    def _manifest(self, case: Case, subject: Subject) -> Iterator[Finding]:
        after, tree = [*rows(case, subject.head, judged_or_head(case.change))], case.change.base
        before = [*rows(case, subject.base, tree)] if subject.base is not None else []
        if not any(case.change.entry(one) for one in sources(subject, (*after, *before))):
            return
        head = [one for row in after for one in said(case, row, judged_or_head(case.change))]
        base = [one for row in before for one in said(case, row, tree)]
        found = dict.fromkeys(
            (one.path, saw) for one in head for saw in newly(one, partners(one, base))
        )
        for path, saw in [*found][:MAX_FINDINGS]:
            yield self.finding(path=path, saw=saw, want="no word that the target's does not give")


def rows(case: Case, manifest: Manifest, tree: Tree) -> Iterator[Variant]:
    """The rows of a manifest's variant tables; broken tables are FT309's."""
    for unit in manifest.units:
        data = content(case, tree, unit.variants) if unit.variants is not None else None
        if unit.variants is None or data is None:
            continue
        try:
            yield from load_variant_table(data, unit.variants).variants
        except InputError:
            continue


def sources(subject: Subject, variants: Iterable[Variant]) -> Iterator[str]:
    """Every file that has a say in which contracts there are."""
    yield subject.path
    yield from (unit.variants for unit in subject.head.units if unit.variants is not None)
    for row in variants:
        if row.audit is not None:
            yield from (row.audit.code, *row.audit.contracts)


def content(case: Case, tree: Tree, path: str) -> bytes | None:
    """The bytes of a regular file; None where there is none."""
    side = tree.get(path)
    return case.change.blob(side) if side is not None and side.mode.startswith("100") else None


def said(case: Case, row: Variant, tree: Tree) -> Iterator[Said]:
    """The contracts that a row of a variant table names."""
    if row.audit is None:
        return
    for path in row.audit.contracts:
        yield from _read(path, row.kernel, content(case, tree, path))
    code = row.audit.code
    if code.endswith(".py"):
        yield from _calculated(code, row.kernel, content(case, tree, code))


def _read(path: str, kernel: str, data: bytes | None) -> Iterator[Said]:
    """The contract of a file; one that is wrong proves nothing, so that it is none."""
    from fasttrack.audit.lint import load_contract  # noqa: PLC0415 - seldom needed, and slow

    try:
        yield Said(path, kernel, load_contract(data or b"", path))
    except InputError:
        return


def _calculated(path: str, kernel: str, data: bytes | None) -> Iterator[Said]:
    """The contracts of a module: each that is written out, else how they are made."""
    from fasttrack.audit.lint import load_contract  # noqa: PLC0415 - as above

    try:
        module = ast.parse(data or b"")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for statement in module.body:
        value = _assigned(statement)
        if value is None:
            continue
        try:
            listed = ast.literal_eval(value)
            for one in listed:
                yield Said(path, kernel, load_contract(json.dumps(one), path))
        except (ValueError, TypeError, InputError):
            yield Said(path, kernel, None, ast.dump(value))


def _assigned(statement: ast.stmt) -> ast.expr | None:
    """What a statement of a module makes its contracts."""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    else:
        return None
    named = any(isinstance(one, ast.Name) and one.id == "CONTRACTS" for one in targets)
    return statement.value if named else None


def partners(one: Said, base: list[Said]) -> list[Said]:
    """The contracts that a contract takes the place of: of its file, else of its kernel."""
    same = [old for old in base if old.path == one.path]
    if one.contract is not None:
        pattern = one.contract.kernel
        alike = [old for old in base if old.contract and old.contract.kernel == pattern]
        same = [old for old in same if old in alike] or alike or same
    return same or [old for old in base if old.kernel == one.kernel]


def newly(one: Said, before: list[Said]) -> tuple[str, ...]:
    """What a contract says that none of the earlier ones does; nothing for a first one."""
    from fasttrack.audit.promises import loosened  # noqa: PLC0415 - as above

    if not before or one in before:
        return ()
    if one.contract is None:
        return ("contracts are calculated in another way",)
    name = one.contract.kernel
    options = [
        tuple(f"the contract of `{name}` {what}" for what in loosened(old.contract, one.contract))
        for old in before
        if old.contract is not None
    ]
    return min(options, key=len) if options else (f"a contract of `{name}` instead of calculation",)
