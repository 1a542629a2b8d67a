# SPDX-License-Identifier: Apache-2.0
"""The audit over kernels of the CuTe DSL (`controls/dsl/`), and how a module is compiled.

The DSL is not needed here: cubins and contracts are stored, and a stand-in takes the compiler's
place.
"""

import sys
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import yaml

from fasttrack.audit.finding import Verdict
from fasttrack.audit.judge import audit
from fasttrack.audit.lint import check_against, check_contract
from fasttrack.audit.read.module import cubins_of
from fasttrack.errors import FactUnavailable
from tests.audit.controls.build import digests
from tests.audit.controls.dsl.table import (
    ARCHIVE,
    COMPILER,
    DIGESTS,
    SOURCE,
    Control,
    controls,
    kernel,
)
from tests.audit.controls.table import ARCHES
from tests.audit.interpreter.truth import truth

CONTROLS = controls()
CASES = pytest.mark.parametrize("control", CONTROLS, ids=lambda one: one.name)
QUICK = ((0, 3), (0, -1))
"""Orders and numbers of the runs."""
LIMIT = 32 * 1024
"""Most bytes that the stored cubins may take."""


@pytest.mark.parametrize("arch", ARCHES)
@CASES
def test_a_control_is_judged_as_its_machine_code_deserves(control: Control, arch: str) -> None:
    audited = audit(kernel(control.name, arch), control.contract, None)
    broken = {one.rule for one in audited.findings if one.verdict is Verdict.VIOLATED}
    assert audited.verdict is control.verdict, [one.saw for one in audited.findings]
    assert control.rules[arch] <= broken


@pytest.mark.parametrize("arch", ARCHES)
@CASES
def test_running_a_control_shows_what_is_expected_of_it(control: Control, arch: str) -> None:
    events = truth(kernel(control.name, arch), control.contract, QUICK)
    assert bool(events) is (control.verdict is Verdict.VIOLATED)


@CASES
def test_the_contract_of_a_control_is_sound_and_fits_its_kernel(control: Control) -> None:
    check_contract(control.contract, control.name)
    for arch in ARCHES:
        check_against(control.contract, kernel(control.name, arch), control.name)


def test_both_kinds_are_there_and_every_violated_one_names_its_rules() -> None:
    counts = Counter(one.verdict for one in CONTROLS)
    assert set(counts) == {Verdict.VIOLATED, Verdict.PROVED}
    assert min(counts.values()) >= 6
    for one in CONTROLS:
        assert all(bool(r) is (one.verdict is Verdict.VIOLATED) for r in one.rules.values())


def test_every_kernel_of_the_module_has_its_entry_and_its_machine_code() -> None:
    text = SOURCE.read_text(encoding="utf-8")
    written = {part.split("(")[0] for part in text.split("@cute.kernel\ndef ")[1:]}
    assert written == {one.name for one in CONTROLS}
    assert all(kernel(name, arch).arch == arch for name in written for arch in ARCHES)


def test_the_stored_cubins_were_made_of_this_module() -> None:
    record = yaml.safe_load(DIGESTS.read_text(encoding="utf-8"))
    again = "the module changed: python -m tests.audit.controls.dsl build"
    assert record["compiler"] == COMPILER
    assert record["sources"] == digests((SOURCE,)), again
    assert record[ARCHIVE.name] == digests((ARCHIVE,))[ARCHIVE.name]
    assert ARCHIVE.stat().st_size <= LIMIT


class _Compiler:
    """Stands where the DSL would: keeps cubins as files, as that does."""

    def __init__(self) -> None:
        self.kept: list[Path] = []
        self.asked: list[str] = []

    def compile(self, function: object, *arguments: object, options: str) -> SimpleNamespace:
        words = options.split()
        folder = Path(words[words.index("--dump-dir") + 1] if "--dump-dir" in words else ".")
        self.asked.append(words[words.index("--gpu-arch") + 1])
        self.kept.append(folder.resolve() / "kernel.cubin")
        self.kept[-1].write_bytes(b"cubin")
        if function == "bad":
            raise ValueError("no\nsuch tile")
        return SimpleNamespace(artifacts=SimpleNamespace(CUBIN=self.kept[-1].read_bytes()))


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> _Compiler:
    made = _Compiler()
    package = ModuleType("cutlass")
    package.cute = made  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cutlass", package)
    monkeypatch.chdir(tmp_path)
    return made


def test_compiling_a_module_leaves_nothing_beside_the_caller(
    compiler: _Compiler, tmp_path: Path
) -> None:
    module = SimpleNamespace(audit_targets=lambda: iter([("one", (1,)), ("two", ())]))
    assert list(cubins_of(module, "sm_90a")) == [b"cubin", b"cubin"]
    assert compiler.asked == ["sm_90a", "sm_90a"]
    assert len(compiler.kept) == 2
    assert not any(file.exists() or file.parent.exists() for file in compiler.kept)
    assert list(tmp_path.iterdir()) == []


def test_a_target_that_does_not_compile_says_so_and_leaves_nothing(
    compiler: _Compiler, tmp_path: Path
) -> None:
    module = SimpleNamespace(audit_targets=lambda: iter([("bad", ())]))
    with pytest.raises(FactUnavailable, match=r"it does not compile for sm_100a: ValueError: no$"):
        list(cubins_of(module, "sm_100a"))
    assert not compiler.kept[0].exists()
    assert list(tmp_path.iterdir()) == []
