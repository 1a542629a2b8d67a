# SPDX-License-Identifier: Apache-2.0
"""G1: the audit proves the order of loads in the machine code that runs."""

from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from fasttrack.audit import run
from fasttrack.audit.approvals import Approvals
from fasttrack.audit.finding import Verdict
from fasttrack.audit.lint import load_contract
from fasttrack.audit.read.cubin import is_cubin
from fasttrack.audit.read.tools import path_of
from fasttrack.errors import FactUnavailable, InputError
from kimi_k3.validation.bench import Bench
from kimi_k3.validation.candidate import MachineCode
from kimi_k3.validation.gates.base import Outcome, State, outcome

PACKAGES = "nvidia"
"""Folder of NVIDIA's packages in an installation."""


class Static:
    """See the module."""

    number, name = "G1", "static"
    closes: tuple[int, ...] = ()

    def judge(self, bench: Bench) -> Outcome:
        """See `base.Gate`."""
        code = bench.candidate.code
        if code is None:
            return Outcome(State.NOT_RUN, notes=("there is no machine code to read",))
        if lacking := _lacking(code):
            return Outcome(State.NOT_RUN, notes=(lacking,))
        try:
            kernels = _audited(code)
        except (InputError, FactUnavailable) as error:
            return Outcome(State.FAILED, (str(error),))
        found = []
        for one in kernels:
            if one.audited.verdict is not Verdict.PROVED:
                said = f"{one.audited.kernel} is {one.audited.verdict.value}"
                found += [f"{said}: {f.rule}: {f.saw}" for f in one.audited.findings]
        names = {one.audited.kernel for one in kernels}
        missing = {one.name for one in bench.candidate.kernels if code.digest} - names
        found += [f"{code.name} has no kernel {name}" for name in sorted(missing)]
        return outcome(found, {"kernels": len(kernels)})


def _lacking(code: MachineCode) -> str:
    """Why nothing here reads the code as everywhere else; empty when something does.

    A machine's own tools are of any version, and may print what the audit does not know.
    """
    for tool in ("cuobjdump", "nvdisasm") if is_cubin(code.data) else ("ptxas", "nvdisasm"):
        try:
            where = Path(path_of(tool))
        except InputError as error:
            return str(error.problems[0])
        if PACKAGES not in where.parts:
            return f"{where} is not what the extra `audit` brings"
    return ""


@lru_cache(maxsize=64)
def _audited(code: MachineCode) -> tuple[run.Outcome, ...]:
    named = run.Named(code.name, load_contract(code.contract, code.name))
    today = datetime.now(UTC).date()  # no waiver is given, so no day decides anything
    source = run.Source(code.name, code.data)
    return run.audit_files([source], [named], Approvals(approvals=1), today)
