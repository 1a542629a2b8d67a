# SPDX-License-Identifier: Apache-2.0
"""Flags and what they announce: kernels that must be violated, and honest twins of them.

Compiled as they are read: `announced.cu`, and what each must be judged as in `announced.yaml`.
"""

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

SOURCE = Path(__file__).with_name("announced.cu")
CASES: dict[str, dict[str, Any]] = yaml.safe_load(SOURCE.with_suffix(".yaml").read_text("utf-8"))


@cache
def kernels(arch: str) -> dict[str, Kernel]:
    """The kernels of the file, by name."""
    return {one.name: one for one in read_cubin(compile_source(SOURCE, arch))}


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("name", CASES)
def test_a_kernel_is_judged_as_its_machine_code_deserves(name: str, arch: str) -> None:
    case, kernel = CASES[name], kernels(arch)[name]
    contract = contract_of(name, case)
    check_contract(contract, name)
    check_against(contract, kernel, name)
    audited = audit(kernel, contract, None)
    broken = {one.rule for one in audited.findings if one.verdict is Verdict.VIOLATED}
    assert audited.verdict is Verdict(case["is"]), [one.saw for one in audited.findings]
    assert broken == set(case.get("rules", ()))


@pytest.mark.parametrize("arch", ARCHES)
def test_every_kernel_of_the_source_has_its_entry(arch: str) -> None:
    assert set(kernels(arch)) == set(CASES)
