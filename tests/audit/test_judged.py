# SPDX-License-Identifier: Apache-2.0
"""Kernels that must be violated, and honest twins of them: each is judged as it deserves.

Compiled as they are read: bulk stores, triggers and discards (`late.cu`), and flags with what they
announce (`announced.cu`). What each must be judged as is in the file's YAML.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from fasttrack.audit.finding import Verdict
from fasttrack.audit.judge import audit
from fasttrack.audit.lint import check_against, check_contract
from fasttrack.audit.program import Kernel
from fasttrack.audit.read.cubin import read_cubin
from tests.audit.controls.build import compile_source
from tests.audit.controls.table import ARCHES, contract_of
from tests.audit.interpreter.truth import truth

HERE = Path(__file__).parent
CASES: Mapping[str, Mapping[str, dict[str, Any]]] = {
    name: yaml.safe_load((HERE / f"{name}.yaml").read_text("utf-8"))
    for name in ("late", "announced")
}
EVERY = [(file, name) for file, cases in CASES.items() for name in cases]
RUN = [(file, name) for file, name in EVERY if CASES[file][name].get("interpreted", file == "late")]
QUICK = ((0, 3), (0, 6), (2, 3))
"""Orders and numbers, as in `interpreter.truth`."""


@cache
def kernels(file: str, arch: str) -> dict[str, Kernel]:
    """The kernels of a file, by name."""
    return {one.name: one for one in read_cubin(compile_source(HERE / f"{file}.cu", arch))}


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(("file", "name"), EVERY)
def test_a_kernel_is_judged_as_its_machine_code_deserves(file: str, name: str, arch: str) -> None:
    case, kernel = CASES[file][name], kernels(file, arch)[name]
    contract = contract_of(name, case)
    check_contract(contract, name)
    check_against(contract, kernel, name)
    audited = audit(kernel, contract, None)
    broken = {one.rule for one in audited.findings if one.verdict is Verdict.VIOLATED}
    assert audited.verdict is Verdict(case["is"]), [one.saw for one in audited.findings]
    assert broken == set(case.get("rules", ()))


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("file", CASES)
def test_every_kernel_of_the_source_has_its_entry(file: str, arch: str) -> None:
    assert set(kernels(file, arch)) == set(CASES[file])


@pytest.mark.parametrize(("file", "name"), RUN)
def test_the_interpreter_finds_what_a_kernel_deserves(file: str, name: str) -> None:
    case = CASES[file][name]
    seen = truth(kernels(file, "sm_90a")[name], contract_of(name, case), QUICK)
    assert bool(seen) is (case["is"] == "violated"), seen
