# SPDX-License-Identifier: Apache-2.0
"""Files, contracts and kernels brought together."""

from datetime import date
from pathlib import Path

import pytest

from fasttrack.audit.approvals import Approvals
from fasttrack.audit.contract import Contract
from fasttrack.audit.finding import Verdict
from fasttrack.audit.launches import Recorded
from fasttrack.audit.lint import load_contract
from fasttrack.audit.run import Named, Outcome, Source, audit_files, gathered, hazards_of
from fasttrack.errors import FactUnavailable, InputError
from tests.audit.controls.table import controls, stored
from tests.audit.example import CONTRACT, RIGHT, WRONG, contract, cubin, named

NONE, DAY = Approvals(approvals=1), date(2027, 3, 1)


def _audited(*contracts: Named, text: bytes = RIGHT, only: str = "*") -> tuple[Outcome, ...]:
    return audit_files([Source("scale.ptx", text)], contracts, NONE, DAY, only)


def _contract(**changed: object) -> Named:
    document = {**contract().model_dump(mode="json", exclude_unset=True), **changed}
    return Named("other.yaml", Contract.model_validate(document, strict=False))


def test_a_kernel_is_audited_under_the_contract_that_speaks_of_it() -> None:
    other = _contract(kernel="other")
    (bare,) = _audited()
    (found,) = _audited(named())
    assert (found.audited.verdict, found.named) == (Verdict.PROVED, named())
    assert (bare.audited.verdict, bare.named) == (Verdict.UNPROVEN, None)
    assert [one.saw for one in bare.audited.findings] == ["there is no contract"]
    with pytest.raises(InputError, match=r"^other.yaml: saw a contract of 'other'; want a kernel"):
        _audited(named(), other)


def test_two_contracts_of_a_kernel_are_bad_input() -> None:
    with pytest.raises(InputError, match=r"scale: saw contracts scale.yaml and other.yaml"):
        _audited(named(), _contract(kernel="sc*"))


def test_a_contract_that_does_not_fit_is_bad_input() -> None:
    with pytest.raises(InputError, match=r"other.yaml: block: saw 256 threads; want at most 128"):
        _audited(_contract(block=[256, 1, 1]))


def test_kernels_are_chosen_by_name_and_then_unused_contracts_are_allowed() -> None:
    control = next(one for one in controls() if one.name == "good")
    files = [Source("order", stored()["order.sm_90a.cubin"])]
    found = audit_files(files, [Named("good", control.contract), named()], NONE, DAY, "good*")
    assert [(one.audited.kernel, one.audited.verdict) for one in found] == [
        ("good", Verdict.PROVED)
    ]


def test_a_file_that_can_not_be_read_is_unproven_with_the_reason() -> None:
    (found,) = audit_files([Source("cut", cubin()[:200])], (), NONE, DAY)
    assert (found.audited.kernel, found.audited.verdict) == ("?", Verdict.UNPROVEN)
    assert found.audited.findings[0].rule == "READ"
    assert "can not read it" in found.audited.findings[0].saw
    assert not found.passes


def test_a_file_that_names_no_kernel_is_not_passed_over() -> None:
    stripped = cubin().replace(b"\0scale\0", b"\0\0\0\0\0\0\0")
    (found,) = audit_files([Source("stripped", stripped)], (), NONE, DAY)
    assert found.audited.verdict is Verdict.UNPROVEN


def test_why_a_file_can_not_be_read_comes_before_that_its_contract_is_unused() -> None:
    broken = RIGHT.replace(b"bar.sync", b"bar.sink")
    (found,) = _audited(named(), text=broken)
    assert found.audited.findings[0].saw.startswith("ptxas can not read it")


def test_what_did_not_compile_is_unproven_with_the_reason() -> None:
    (found,) = audit_files([Source("m.py for sm_90a", b"", "it does not")], (), NONE, DAY)
    assert found.audited.findings[0].saw == "it does not"


STRANGE = {
    "a text": (b"contract: 1\n", "neither cubin nor PTX", ""),
    "nothing": (b"", "an empty file", ""),
    "a program": (Path("/proc/self/exe").read_bytes()[:4096], "a program or library of the host",
                  "cuobjdump -xelf all"),
    "a fat binary": (b"\x50\xed\x55\xba" + bytes(12), "a fat binary", "cuobjdump -xelf all"),
    "zeros": (bytes(1 << 20), "neither cubin nor PTX", ""),
}  # fmt: skip


@pytest.mark.parametrize(("data", "saw", "fix"), STRANGE.values(), ids=STRANGE.keys())
def test_a_file_of_another_kind_is_bad_input_that_says_what_it_is(
    tmp_path: Path, data: bytes, saw: str, fix: str
) -> None:
    (tmp_path / "odd").write_bytes(data)
    (tmp_path / "good").write_bytes(cubin())
    with pytest.raises(InputError) as raised:
        gathered([tmp_path / "good", tmp_path / "odd"], ())
    (problem,) = raised.value.problems
    assert (problem.where, problem.saw) == (str(tmp_path / "odd"), saw)
    assert problem.want == "a cubin, PTX, or a module of the CuTe DSL (.py)"
    assert fix in problem.fix


MODULE = f"""
def audit_targets():
    return ()

CONTRACTS = [{load_contract(CONTRACT, "c").model_dump(mode="json", exclude_unset=True)!r}]
"""


def test_a_module_brings_its_contracts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "kernels.py"
    file.write_text(MODULE)
    asked = []

    def compiled(_module: object, arch: str) -> list[bytes]:
        asked.append(arch)
        if arch == "sm_100a":
            raise FactUnavailable("it does not compile")
        return [cubin()]

    monkeypatch.setattr("fasttrack.audit.run.cubins_of", compiled)
    sources, contracts = gathered([file], ["sm_90a", "sm_100a"])
    assert asked == ["sm_90a", "sm_100a"]
    assert [(one.name, one.unread) for one in sources] == [
        (f"{file} for sm_90a", ""), (f"{file} for sm_100a", "it does not compile"),
    ]  # fmt: skip
    assert contracts == [Named(f"{file}: scale", contract())]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1\n", "saw no function `audit_targets`"),
        ("import no_such_package\n", "saw ModuleNotFoundError: No module named 'no_such_package'"),
        ("def audit_targets(:\n", "saw SyntaxError"),
        (MODULE.replace("'pdl': True, ", ""), r"CONTRACTS\[0\].*pdl"),
        (MODULE.replace("'dynamic'", "'scalar'"), r"CONTRACTS\[0\]: reads: saw 'rows'"),
    ],
)
def test_a_module_that_is_wrong_is_bad_input(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "kernels.py"
    file.write_text(text)
    with pytest.raises(InputError, match=says):
        gathered([file], ["sm_90a"])


def _recorded(early: bool = True, kernel: str = "scale") -> Recorded:
    rows = {"buffer": "rows", "start": 0, "size": 4096}
    return Recorded.model_validate(
        {"launches": 1, "sequence": [
            {"kernel": "norm", "stream": "main", "programmatic": False, "writes": [rows]},
            {"kernel": kernel, "stream": "main", "programmatic": early, "reads": [rows]},
        ]}, strict=False,
    )  # fmt: skip


def _kinds(outcomes: tuple[Outcome, ...], recorded: Recorded | None) -> list[str]:
    return [one.kind for one in hazards_of(outcomes, recorded, "launches.yaml")]


def test_only_a_kernel_that_is_known_to_wait_is_in_order_behind_an_early_start() -> None:
    assert _kinds(_audited(named()), _recorded()) == []
    assert _kinds(_audited(), _recorded()) == ["RAW"], "without a contract nothing is known"
    without = RIGHT.replace(b"    griddepcontrol.wait;\n", b"")
    (found,) = _audited(named(), text=without)
    assert "NO-WAIT" in {one.rule for one in found.audited.findings}
    assert _kinds((found,), _recorded()) == ["RAW"]


def test_every_build_of_a_kernel_must_wait() -> None:
    both = (*_audited(named()), *_audited())
    assert _kinds(both, _recorded()) == ["RAW"]


def test_full_edges_need_no_audit_and_early_ones_do() -> None:
    assert _kinds((), _recorded(early=False, kernel="library")) == []
    with pytest.raises(InputError, match=r"sequence\[1\]: saw 'library' launched early; want a k"):
        _kinds(_audited(named()), _recorded(kernel="library"))


def test_a_kernel_that_never_starts_early_by_its_contract_must_not_be_launched_so() -> None:
    with pytest.raises(InputError, match=r"saw 'scale' launched early; want `pdl: true`"):
        _kinds(_audited(_contract(pdl=False)), _recorded())


def test_the_neighbours_of_a_contract_are_checked_without_a_record() -> None:
    near = [{"distance": 1, "name": "next", "writes": ["rows"], "waits": False}]
    outcomes = _audited(_contract(neighbours=near))
    (found,) = hazards_of(outcomes, None, "")
    assert (found.source, found.kind, found.first, found.second) == ("other.yaml", "WAR", 0, 1)
    assert found.why == "next (1 launch after) starts early and does not surely wait for scale"
    assert hazards_of((*outcomes, *outcomes), None, "") == (found,)


def test_the_bug_that_started_it_all_is_found_on_the_moved_read() -> None:
    (found,) = _audited(named(), text=WRONG)
    broken = {one.rule for one in found.audited.findings if one.verdict is Verdict.VIOLATED}
    assert {"NC", "DOM"} <= broken
    assert {one.parameter for one in found.audited.findings} == {"rows"}
