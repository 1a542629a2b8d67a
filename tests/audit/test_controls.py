# SPDX-License-Identifier: Apache-2.0
"""The audit over kernels of which it is known how they must be judged (`controls/`)."""

import re
from collections import Counter

import pytest
import yaml

from fasttrack.audit.finding import Verdict
from fasttrack.audit.judge import audit
from fasttrack.audit.lint import check_against, check_contract
from tests.audit.controls.build import COMPILER, DIGESTS, compile_source, digests, pack, sources
from tests.audit.controls.table import (
    ARCHES,
    ARCHIVE,
    HERE,
    THEMES,
    Control,
    controls,
    kernels,
    stored,
)

LIMIT = 400 * 1024
"""Most bytes that the stored cubins may take."""
CONTROLS = controls()


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("control", CONTROLS, ids=lambda one: one.name)
def test_a_control_is_judged_as_its_machine_code_deserves(control: Control, arch: str) -> None:
    kernel = kernels(control.theme, arch)[control.name]
    audited = audit(kernel, control.contract, None)
    broken = {one.rule for one in audited.findings if one.verdict is Verdict.VIOLATED}
    wanted = Verdict.UNPROVEN if arch in control.unproven else control.verdict
    assert audited.verdict is wanted, [one.saw for one in audited.findings]
    assert control.rules[arch] <= broken


@pytest.mark.parametrize("control", CONTROLS, ids=lambda one: one.name)
def test_the_contract_of_a_control_is_sound_and_fits_its_kernel(control: Control) -> None:
    check_contract(control.contract, control.name)
    for arch in ARCHES:
        check_against(control.contract, kernels(control.theme, arch)[control.name], control.name)


def test_there_are_at_least_thirty_controls_of_each_kind() -> None:
    counts = Counter(one.verdict for one in CONTROLS)
    assert set(counts) == {Verdict.VIOLATED, Verdict.PROVED}
    assert min(counts.values()) >= 30


@pytest.mark.parametrize("theme", THEMES)
def test_every_kernel_of_a_source_has_its_entry(theme: str) -> None:
    text = (HERE / f"{theme}.cu").read_text(encoding="utf-8")
    written = re.findall(r"__launch_bounds__\(128\)\s+(\w+)\(|^KERNEL\(\d+\) (\w+)\(", text, re.M)
    named = [one.name for one in CONTROLS if one.theme == theme]
    assert Counter(named) == Counter(first or second for first, second in written)
    for arch in ARCHES:
        assert set(kernels(theme, arch)) == set(named)


def test_a_control_that_no_audit_can_show_is_an_honest_one() -> None:
    left = [one for one in CONTROLS if one.unproven]
    assert all(one.verdict is Verdict.PROVED for one in left)
    assert len(left) <= 0.05 * len(CONTROLS)


def test_every_violated_control_names_the_rules_that_it_breaks() -> None:
    for one in CONTROLS:
        for rules in one.rules.values():
            assert bool(rules) is (one.verdict is Verdict.VIOLATED), one.name


def test_the_stored_cubins_were_made_of_these_sources() -> None:
    record = yaml.safe_load(DIGESTS.read_text(encoding="utf-8"))
    again = "a source changed: python -m tests.audit.controls build"
    assert record["compiler"] == COMPILER
    assert record["sources"] == digests(sources()), again
    assert record[ARCHIVE.name] == digests((ARCHIVE,))[ARCHIVE.name]
    assert ARCHIVE.stat().st_size <= LIMIT


@pytest.mark.parametrize("theme", THEMES)
def test_compiling_a_source_again_gives_the_stored_bytes(theme: str) -> None:
    for arch in ARCHES:
        assert compile_source(HERE / f"{theme}.cu", arch) == stored()[f"{theme}.{arch}.cubin"]


def test_packing_knows_neither_time_nor_order() -> None:
    assert pack({"a": b"1", "b": b"2"}) == pack({"b": b"2", "a": b"1"})
