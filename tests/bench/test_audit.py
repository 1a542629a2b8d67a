# SPDX-License-Identifier: Apache-2.0
"""The kernel that the audit's bench measures: what it is, and what an audit says of it."""

import pytest

from fasttrack.audit.finding import Verdict
from fasttrack.audit.judge import audit
from fasttrack.audit.lint import check_against, check_contract
from fasttrack.audit.read.cubin import read_cubin
from tests.audit.controls.build import pack
from tests.audit.controls.table import ARCHES
from tests.bench.audit import ARCHIVE, built, contract, stored

LIMIT = 64 * 1024
"""Most bytes that the stored cubins may take."""


@pytest.mark.parametrize("arch", ARCHES)
def test_the_kernel_has_five_thousand_instructions_and_is_proved(arch: str) -> None:
    (kernel,) = read_cubin(stored(arch))
    assert 5000 <= len(kernel.instructions) <= 7000
    check_contract(contract(), "contract")
    check_against(contract(), kernel, "contract")
    audited = audit(kernel, contract(), None)
    assert audited.verdict is Verdict.PROVED, [one.saw for one in audited.findings]


def test_compiling_the_kernel_again_gives_the_stored_bytes() -> None:
    assert pack(built()) == ARCHIVE.read_bytes()
    assert ARCHIVE.stat().st_size <= LIMIT
