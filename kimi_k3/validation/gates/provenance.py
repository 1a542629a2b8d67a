# SPDX-License-Identifier: Apache-2.0
"""G0: the candidate is what it says, and the judge is what it was.

* Its operands are those of the operator's schema: names, formats, roles, axes of one extent.
* What its contract calls `static` is so in the schema; else an early read would look allowed.
* Its machine code has the digest that was built.
* What it is made of and what judges it are different files, and it changes none of the latter.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from fasttrack.audit.contract import Class
from kimi_k3.decode.kernels.shapes import Operand, Role
from kimi_k3.validation.bench import Bench
from kimi_k3.validation.candidate import Candidate
from kimi_k3.validation.draw import some
from kimi_k3.validation.gates.base import Outcome, outcome
from kimi_k3.validation.operators import OPERATORS
from kimi_k3.validation.operators.base import OperandSchema

CLASSES = {
    Role.STATIC: {Class.STATIC},
    Role.IN: {Class.DYNAMIC, Class.METADATA},
    Role.OUT: {Class.OUT},
    Role.INOUT: {Class.DYNAMIC, Class.OUT},
    Role.MAILBOX: {Class.MAILBOX, Class.FLAG},
    Role.WORKSPACE: {Class.DYNAMIC, Class.OUT},
    Role.SCALAR: {Class.SCALAR},
}
"""Classes of the audit that a contract may give an operand."""
CALLS = 2


class Provenance:
    """See the module."""

    number, name = "G0", "provenance"
    closes = (32,)

    def judge(self, bench: Bench) -> Outcome:
        """See `base.Gate`."""
        candidate = bench.candidate
        found = [*_schema_problems(candidate), *_class_problems(candidate)]
        code = candidate.code
        if code is not None and code.digest not in {"", sha256(code.data).hexdigest()}:
            found.append(f"{code.name} is not the machine code that was built")
        both = {_real(path) for path in candidate.sources} & {_real(p) for p in bench.files}
        found += [f"{path} is the judge's and the candidate's" for path in sorted(both)]
        before = _digests(bench.files)
        rng = bench.rng(self.name)
        for case in some(candidate, rng, CALLS):
            bench.tried(bench.prepared(case, rng))
        after = _digests(bench.files)
        found += [f"{path} of the judge changed" for path in before if before[path] != after[path]]
        return outcome(found, {"judge's files": len(before)})


def _schema_problems(candidate: Candidate) -> Iterator[str]:
    schema = OPERATORS[candidate.operator].schema.operands
    extents: dict[str, int] = {}
    for one in candidate.operands:
        if one.role is Role.WORKSPACE:
            continue
        want = schema.get(one.name)
        if want is None:
            yield f"operand {one.name} is not one of {candidate.operator}"
        else:
            yield from _unlike(one, want, extents)
    present = {one.name for one in candidate.operands}
    missing = [name for name, want in schema.items() if want.required and name not in present]
    yield from (f"there is no operand {name}" for name in missing)
    if candidate.rows[1] > extents.get("rows", 0):
        yield f"{candidate.rows[1]} rows do not fit operands of {extents.get('rows', 0)}"


def _unlike(one: Operand, want: OperandSchema, extents: dict[str, int]) -> Iterator[str]:
    """How an operand is not as the schema has it; `extents` are those of its axes so far."""
    if one.dtype != want.dtype or one.role.value != want.role:
        yield f"operand {one.name} is {one.dtype} {one.role}, not {want.dtype} {want.role}"
    elif len(one.shape) != len(want.shape):
        yield f"operand {one.name} has {len(one.shape)} axes, not {len(want.shape)}"
    else:
        for axis, extent in zip(want.shape, one.shape, strict=True):
            if extents.setdefault(axis, extent) != extent:
                yield f"operand {one.name} has {extent} {axis}, others {extents[axis]}"


def _class_problems(candidate: Candidate) -> Iterator[str]:
    for one in candidate.operands:
        said = candidate.classes.get(one.name)
        if candidate.classes and said is None:
            yield f"the contract says nothing of {one.name}"
        elif said is not None and said not in CLASSES[one.role]:
            yield f"the contract calls {one.name} {said}, and it is {one.role}"


def _digests(files: Sequence[str]) -> dict[str, str]:
    return {path: sha256(Path(path).read_bytes()).hexdigest() for path in files}


def _real(path: str) -> Path:
    return Path(path).resolve()
