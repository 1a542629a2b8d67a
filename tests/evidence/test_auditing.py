# SPDX-License-Identifier: Apache-2.0
"""Audits of machine code as evidence: from the variant table to statements, and to a verdict."""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from fasttrack.errors import FactUnavailable, InputError
from fasttrack.evidence import store
from fasttrack.evidence.auditing import Run, audit
from fasttrack.evidence.bundle import statements
from fasttrack.evidence.child import Outcome
from fasttrack.evidence.collect import Collected, Progress
from fasttrack.evidence.plan import Plan, PlannedCell
from fasttrack.evidence.predicates.common import RunFacts
from fasttrack.evidence.predicates.sync_audit_v1 import SyncAuditV1
from fasttrack.evidence.subject import unit_of
from fasttrack.manifest.variants import load_variant_table
from fasttrack.next_steps import next_steps
from fasttrack.testing import Content, Repo
from fasttrack.verdict import Outcome as Verdict
from fasttrack.vocabulary import Kind
from tests.engine import KERNEL, MANIFEST
from tests.evidence.audits import (
    CONTRACT,
    DIGEST,
    FOLDER,
    SCALE,
    SKELETON,
    STORED,
    checked_out,
    plan_of,
    row,
    signed,
    toy,
    waiver,
)
from tests.evidence.collecting import MACHINE, RUN, collect, settings_of
from tests.evidence.lanes import KEPT, RUN_DAY, judged, owed_at, shown, statuses, stored
from tests.evidence.plans import TABLE, commit

MAKES = """
import yaml
from pathlib import Path

HERE = Path(__file__).parent
SCALE = yaml.safe_load((HERE / "scale.yaml").read_text())
CONTRACTS = [SCALE, SCALE | {"kernel": "of_another_variant"}]

def cubin_of(variant):
    if variant["id"] == "text":
        return "no bytes"
    if variant["id"] == "reads":
        (HERE.parent / "outside.yaml").read_text()
    if variant["id"] == "fails":
        raise ValueError(f"no such {variant['id']} of {variant['warps']}")
    return (HERE / "scale.cubin").read_bytes()
"""
ROWS = [
    row(1, "proved", "scale.cubin", CONTRACT),
    row(2, "violated", "early.cubin", CONTRACT),
    row(3, "bare", "scale.cubin"),
    row(4, "foreign", "other.cubin", CONTRACT),
    row(5, "torn", "torn.cubin"),
    row(6, "outside", "scale.cubin", "engine/outside.yaml"),
    row(7, "gone", "scale.cubin", f"{FOLDER}gone.yaml"),
    row(8, "wrong", "scale.cubin", f"{FOLDER}wrong.yaml"),
    {**row(9, "silent", "x"), "audit": None},
    {**row(10, "made", "make_scale.py"), "warps": 4},
    {**row(11, "text", "make_scale.py"), "warps": 4},
    {**row(12, "fails", "make_scale.py"), "warps": 4},
    {**row(13, "reads", "make_scale.py"), "warps": 4},
    row(14, "empty", "make_empty.py"),
]
MORE: dict[str, Content] = {
    f"{FOLDER}torn.cubin": SCALE[:1000],
    f"{FOLDER}wrong.yaml": (STORED / "scale.yaml").read_text("utf-8").replace("static", "statik"),
    "engine/outside.yaml": (STORED / "scale.yaml").read_text("utf-8"),
    f"{FOLDER}make_scale.py": MAKES,
    f"{FOLDER}make_empty.py": "",
}


class Whole:
    """One run over all variants."""

    def __init__(self, base: Path) -> None:
        files = toy(ROWS, MORE)
        commit(base / "repo", files)
        self.plan = plan_of(base / "repo")
        self.root, self.out = base / "tree", base / "out"
        checked_out(self.root, files)
        self.collected: Collected
        self.told: list[Progress]
        settings = settings_of(self.root, self.out, hardware="here")
        self.collected, self.told = collect(self.plan, settings)

    def of(self, variant: str) -> SyncAuditV1 | None:
        """The statement of a variant; None where there is none."""
        entries = statements(self.out).entries
        found = [
            e.statement.predicate for e in entries if e.statement.cell.values["variant"] == variant
        ]
        assert all(isinstance(one, SyncAuditV1) for one in found)
        return found[0] if found else None  # type: ignore[return-value]

    def progress(self, variant: str) -> Progress:
        """What was told of a variant."""
        return next(one for one in self.told if one.cell.values["variant"] == variant)


@pytest.fixture(scope="module", autouse=True)
def _on_that_day() -> Iterator[None]:
    """All of it runs on one day, before waivers and keys end."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("fasttrack.evidence.collect._now", lambda: RUN_DAY)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    return Whole(tmp_path_factory.mktemp("audits"))


def test_a_statement_has_the_digest_the_kernels_and_both_tools(whole: Whole) -> None:
    found = whole.of("proved")
    assert found is not None
    assert (found.cubin, found.run.isolation, found.inputs.unit) == (DIGEST, "harness", "core")
    assert found.cell.values == {"unit": "core", "arch": "sm_90a", "variant": "proved"}
    assert [(k.name, k.verdict, k.skeleton) for k in found.kernels] == [
        ("scale", "proved", SKELETON)
    ]
    assert found.disassembler.startswith("nvdisasm V1")
    assert found.assembler == "ptxas Cuda compilation tools, release 13.0, V13.0.88"
    assert found.toolchain.packages == {}
    assert (found.problems(), found.inputs.undeclared) == ([], ())
    assert whole.progress("proved").problems == ()


SHOWS_NOTHING: Mapping[str, tuple[str, str]] = {
    "violated": ("scale: violated", "scale at 0x00"),
    "bare": ("scale: unproven", "READ unproven: there is no contract"),
    "torn": ("?: unproven", "READ unproven"),
    "outside": ("1 files were read that nobody declared, engine/outside.yaml first", ""),
    "reads": ("1 files were read that nobody declared, engine/outside.yaml first", ""),
}


@pytest.mark.parametrize("variant", SHOWS_NOTHING)
def test_what_is_not_proved_is_a_statement_that_shows_nothing(whole: Whole, variant: str) -> None:
    problem, log = SHOWS_NOTHING[variant]
    found = whole.of(variant)
    assert found is not None
    assert whole.progress(variant).problems == (problem,)
    assert log in whole.progress(variant).log


LEFT = {
    "foreign": "engine/foo/other.cubin is for sm_100a, and its variant for sm_90a",
    "gone": "engine/foo/gone.yaml: saw No such file or directory; want a file of the tree",
    "wrong": "engine/foo/wrong.yaml:",
    "silent": "engine/foo/table.json names no `audit` of silent",
    "text": "engine/foo/make_scale.py made no machine code: it ended with exit code",
    "fails": "engine/foo/make_scale.py made no machine code: it ended with exit code",
    "empty": "engine/foo/make_empty.py made no machine code: it ended with exit code",
}
LOGGED = {
    "text": "engine/foo/make_scale.py: cubin_of",
    "fails": "no such fails of 4",
    "empty": "`cubin_of`, which makes the machine code of a variant",
}


@pytest.mark.parametrize("variant", LEFT)
def test_where_there_is_nothing_to_audit_no_statement_says_that_it_failed(
    whole: Whole, variant: str
) -> None:
    assert whole.of(variant) is None
    assert whole.progress(variant).problems[0].startswith(LEFT[variant])
    assert LOGGED.get(variant, "") in whole.progress(variant).log


def test_every_variant_is_one_of_these(whole: Whole) -> None:
    assert {*SHOWS_NOTHING, *LEFT, "proved", "made"} == {one["id"] for one in ROWS}
    assert len(whole.told) == len(ROWS)
    found = whole.collected
    assert (found.passed, found.failed, found.unmeasured) == (2, len(SHOWS_NOTHING), len(LEFT))


def test_a_module_makes_machine_code_in_a_child_and_brings_its_contracts(whole: Whole) -> None:
    found, proved = whole.of("made"), whole.of("proved")
    assert found is not None
    assert proved is not None
    assert (found.cubin, found.kernels) == (DIGEST, proved.kernels)
    assert (found.problems(), found.run.isolation) == ([], "harness")


def audited(where: Path, rows: list[dict[str, Any]], **manifest: Any) -> SyncAuditV1:
    """The statement of the only variant of a toy."""
    files = toy(rows, {}, **manifest)
    commit(where / "repo", files)
    plan = plan_of(where / "repo")
    checked_out(where / "tree", files)
    collect(plan, settings_of(where / "tree", where / "out", hardware="here"))
    (entry,) = statements(where / "out").entries
    assert isinstance(entry.statement.predicate, SyncAuditV1)
    return entry.statement.predicate


@pytest.mark.parametrize(
    ("waivers", "listed"),
    [
        ([waiver()], True),
        ([waiver(expires="2026-11-01")], False),
        ([waiver("0" * 64)], False),
        ([waiver() | {"rule": "FT103"}], False),
        ([], False),
    ],
)
def test_a_statement_lists_the_manifest_s_waiver_of_its_skeleton(
    tmp_path: Path, waivers: list[dict[str, Any]], listed: bool
) -> None:
    fields = {"waivers": waivers} if waivers else {}
    found = audited(tmp_path, [row(1, "bare", "scale.cubin")], **fields)
    (kernel,) = found.kernels
    assert kernel.verdict == "unproven"
    assert (kernel.waiver is not None) == listed == (not found.problems())
    if kernel.waiver is not None:
        assert (kernel.waiver.owner, kernel.waiver.skeleton) == ("owner", SKELETON)


def test_what_is_violated_is_never_waived(tmp_path: Path) -> None:
    rows = [row(1, "violated", "early.cubin", CONTRACT)]
    (kernel,) = audited(tmp_path / "a", rows).kernels
    (again,) = audited(tmp_path / "b", rows, waivers=[waiver(kernel.skeleton)]).kernels
    assert (again.verdict, again.waiver) == ("violated", None)


def run_in(whole: Whole) -> Run:
    """An audit in the tree of all variants, in which modules make nothing."""
    facts: RunFacts = RUN
    none = Outcome(None, "nobody", "a log")
    return Run(whole.plan, whole.root, MACHINE, lambda: facts, lambda _cell, _build: none)


def cell_of(plan: Plan, variant: str) -> PlannedCell:
    return next(cell for cell in plan.cells if cell.values["variant"] == variant)


def test_an_unknown_variant_a_unit_without_a_table_and_a_silent_child_are_told(
    whole: Whole,
) -> None:
    run, proved = run_in(whole), cell_of(whole.plan, "proved")
    values = {**proved.values, "arch": "sm_100a"}
    with pytest.raises(FactUnavailable, match="has no such variant"):
        audit(run, proved.model_copy(update={"values": values}))
    with pytest.raises(FactUnavailable, match="made no machine code: nobody\na log"):
        audit(run, cell_of(whole.plan, "made"))
    bare = whole.plan.unit("core").model_copy(update={"variants": None})
    plan = whole.plan.model_copy(update={"units": (bare,)})
    with pytest.raises(FactUnavailable, match="the unit core has no variant table"):
        audit(Run(plan, run.root, run.machine, run.facts, run.made), proved)


def test_without_the_tools_nothing_is_said_of_the_machine_code(
    whole: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(tool: str) -> str:
        raise InputError.one(tool, "not installed", "a tool")

    monkeypatch.setattr("fasttrack.audit.read.tools.path_of", missing)
    with pytest.raises(InputError, match="not installed"):
        audit(run_in(whole), cell_of(whole.plan, "proved"))


def test_a_manifest_that_is_not_the_plan_s_waives_nothing(whole: Whole, tmp_path: Path) -> None:
    run, bare = run_in(whole), cell_of(whole.plan, "bare")
    other = whole.plan.manifest.model_copy(update={"sha256": "0" * 64})
    plan = whole.plan.model_copy(update={"manifest": other})
    with pytest.raises(FactUnavailable, match="not the manifest that the plan was made with"):
        audit(Run(plan, run.root, run.machine, run.facts, run.made), bare)


def test_a_unit_without_a_variant_table_is_left_to_others(tmp_path: Path) -> None:
    files = toy([row(1, "proved", "scale.cubin", CONTRACT)], {})
    files |= {MANIFEST: str(files[MANIFEST]).replace(f"  variants: {TABLE}\n", "")}
    commit(tmp_path / "repo", files)
    checked_out(tmp_path / "tree", files)
    plan = plan_of(tmp_path / "repo")
    found, told = collect(plan, settings_of(tmp_path / "tree", tmp_path / "out", hardware="here"))
    assert (told, found.unmeasured) == ([], 0)
    assert found.elsewhere == {"no variant table of core names machine code to audit": 1}


@pytest.mark.parametrize(
    "bad",
    [
        {"code": ""},
        {"code": "/etc/passwd"},
        {"code": "../x.cubin"},
        {"contracts": []},
        {"code": "x.cubin", "more": 1},
        {"code": "x.cubin", "contracts": "x.yaml"},
    ],
)
def test_a_table_names_files_of_the_repository_and_nothing_else(bad: dict[str, Any]) -> None:
    one = {**row(1, "v", "x"), "audit": bad}
    with pytest.raises(InputError, match="audit"):
        load_variant_table(json.dumps({"variants": [one]}), TABLE)


EDIT = {KERNEL: "SPEED = 2\n"}
ROW = [row(1, "small", "scale.cubin", CONTRACT)]


def test_tests_count_once_the_code_that_they_ran_is_audited(tmp_path: Path) -> None:
    """The whole way: tests come in, wait for the audit, count with it, and not with another."""
    files = toy(ROW, {})
    repo = Repo(tmp_path / "repo")
    tip = repo.commit("main", files)
    topic = repo.commit("topic", EDIT, parent=tip)
    cells, measured = owed_at(repo.path, "topic")

    def tests(cubin: str) -> Mapping[str, Content]:
        told = [
            shown(one, measured[unit_of(one)], cubin=cubin)
            for one in cells
            if one.kind is Kind.KERNEL_TEST
        ]
        return stored(tmp_path / cubin, told)

    repo.commit("topic", tests(DIGEST), parent=topic)
    before = judged(repo.path)
    found = statuses(before)
    assert found == {"covered": found["covered"], "missing": 1, "unaudited": found["unaudited"]}
    assert before.outcome is Verdict.NEEDS_EVIDENCE
    assert {(f.rule, f.level.value) for f in before.findings} == {("FT534", "note")}
    (step, *_) = next_steps(before)
    assert step.command == (
        f"fasttrack evidence plan --repo {repo.path} --head topic --unit core --kind sync-audit"
        " --out plan.json"
    )

    # What the plan then asks for is the audit alone; it is collected without a GPU, and signed.
    plan = plan_of(repo.path, topic)
    checked_out(tmp_path / "tree", files | EDIT)
    collect(plan, settings_of(tmp_path / "tree", tmp_path / "out", hardware="here"))
    lines = signed(repo.path, plan, tmp_path / "out")
    audits = {
        KEPT + file.name: file.read_bytes() for file in store.write(tmp_path / "audits", lines)
    }
    repo.commit("topic", {**tests(DIGEST), **audits}, parent=topic)
    after = judged(repo.path)
    assert set(statuses(after)) == {"covered"}
    assert after.outcome is Verdict.FAST_TRACK

    wrong = sha256(b"another build").hexdigest()
    repo.commit("topic", {**tests(wrong), **audits}, parent=topic)
    worse = judged(repo.path)
    assert worse.outcome is Verdict.NEEDS_EVIDENCE
    lacking = worse.coverage.missing
    assert {one.answer.status.value for one in lacking} == {"other-code"}
    text = f"variant small of core for sm_90a ran machine code {wrong}, and {DIGEST} was audited"
    assert {one.answer.detail for one in lacking} == {text}
    assert {f.rule for f in worse.findings} == {"FT534"}
    assert all(f.saw.startswith(text) for f in worse.findings)
    assert "--kind kernel-test" in next_steps(worse)[0].command
