# SPDX-License-Identifier: Apache-2.0
"""The rules about evidence as a family: what holds for all of them, and for hostile files."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasttrack.evidence import accept
from fasttrack.evidence.dsse import verified_key_ids
from fasttrack.evidence.faults import Fault
from fasttrack.evidence.packed import pack
from fasttrack.finding import Level
from fasttrack.rules import RULES, family
from fasttrack.rules.evidence.told import StatementRule
from fasttrack.testing import Repo
from fasttrack.verdict import Verdict, judge
from tests.engine import AS_OF, KERNEL, files
from tests.evidence.lanes import judged, statements_for, statuses, stored
from tests.evidence.test_covered_changes import changed

from .cases import FOLDER, RuleCase, build, load, opened

RULES_HERE = [rule for rule in RULES if family(rule) == "evidence"]
STORE = "manifests/evidence/"
BROUGHT = [
    file
    for rule in RULES_HERE
    for file in sorted((FOLDER / f"{rule.id}-{rule.slug}").glob("*.yaml"))
    if file.stem != "limits" and "evidence" in load(file).given
]


def labelled(case: RuleCase) -> RuleCase:
    """The case in the lane, whatever it changes."""
    return replace(case, given={**case.given, "labelled": True})


def of_evidence(verdict: Verdict) -> list[str]:
    """The findings of this family."""
    return [f"{f.rule} {f.path} {f.saw}" for f in verdict.findings if f.rule.startswith("FT5")]


def test_every_fault_has_the_rule_of_its_name_and_no_waiver_lifts_one() -> None:
    slugs = [rule.slug for rule in RULES_HERE if isinstance(rule, StatementRule)]
    assert slugs == list(Fault)
    assert [rule.id for rule in RULES_HERE if rule.waivable] == []


@pytest.mark.parametrize("file", BROUGHT, ids=lambda f: f"{f.parent.name}/{f.stem}")
def test_what_lies_in_the_target_already_is_held_against_nobody(file: Path, tmp_path: Path) -> None:
    case = load(file)
    kept = [{**item, "at": "base"} for item in case.given["evidence"]]
    change = {"docs/guide.md": "words\n"}
    told = {key: case.given[key] for key in ("policy", "manifest", "keys") if key in case.given}
    other = RuleCase(case.name, {**told, "evidence": kept, "change": change}, "", ())
    with opened(labelled(other), build(other, tmp_path / "repo")) as facts:
        assert of_evidence(judge(facts)) == []


@pytest.mark.parametrize("status", ["missing", "stale"])
def test_a_cell_that_is_merely_owed_is_no_ordinary_review(tmp_path: Path, status: str) -> None:
    repo, _, topic = changed(tmp_path)
    if status == "stale":
        told = statements_for(repo.path, topic, digest="a" * 64)
        repo.commit("topic", stored(tmp_path / "new", told))
    verdict = judged(repo.path)
    assert (verdict.outcome.value, set(statuses(verdict))) == ("needs-evidence", {status})
    assert {f.level for f in verdict.findings} <= {Level.NOTE}


def test_rules_and_coverage_verify_an_envelope_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo, _, topic = changed(tmp_path)
    told = statements_for(repo.path, topic)
    repo.commit("topic", stored(tmp_path / "new", told))
    seen: list[bytes] = []

    def counted(signed: Any, keys: Any) -> frozenset[str]:
        seen.append(signed.payload)
        return verified_key_ids(signed, keys)

    monkeypatch.setattr(accept, "verified_key_ids", counted)
    assert set(statuses(judged(repo.path))) == {"covered"}
    assert len(seen) == len(set(seen)) == len(told)


def test_a_change_without_evidence_imports_nothing_that_is_slow(tmp_path: Path) -> None:
    changed(tmp_path)
    code = (
        "import sys; from datetime import date; from pathlib import Path\n"
        "from fasttrack.verdict import Request, evaluate\n"
        f"evaluate(Request(Path({str(tmp_path / 'repo')!r}), target='main', head='topic'), "
        f"date({AS_OF.year}, {AS_OF.month}, {AS_OF.day}))\n"
        "slow = {'cryptography', 'securesystemslib', 'sigstore'} & set(sys.modules)\n"
        "slow |= {m for m in sys.modules if m.startswith('fasttrack.evidence.predicates')}\n"
        "sys.exit(repr(sorted(slow)) if slow else 0)"
    )
    run = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


hostile = st.one_of(
    st.binary(max_size=200),
    st.sampled_from(
        [
            b"",
            b"\n" * 5000,
            b"{}\n" * 4096,
            b"[" * 100_000,
            b'{"payload":' * 20_000,
            b'{"payload": "' + b"A" * 400_000 + b'"}',
            b'{"mediaType": 1}',
            b"\xff\xfe{}",
            b'{"a":1e999999}',
        ]
    ),
)


SPELLED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "plain": ("", bytes),
    "compressed": (".gz", pack),
    "compressed and cut short": (".gz", lambda content: pack(content)[:-1]),
    "not compressed at all": (".gz", bytes),
}


@settings(max_examples=40)
@given(content=hostile, named=st.booleans(), how=st.sampled_from([*SPELLED]))
def test_any_bytes_in_the_store_are_a_finding_and_never_a_fault(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, named: bool, how: str
) -> None:
    suffix, spelled = SPELLED[how]
    content = spelled(content)
    name = sha256(content).hexdigest() if named else "0" * 64
    repo = Repo(tmp_path_factory.mktemp("hostile") / "repo")
    tip = repo.commit("main", files())
    brought = {f"{STORE}{name}.dsse.jsonl{suffix}": content, KERNEL: "X = 1\n"}
    repo.commit("topic", brought, parent=tip)
    found = [(f.rule, f.level) for f in judged(repo.path).findings if f.rule.startswith("FT5")]
    assert found == [("FT503", Level.ROUTE) if named else ("FT501", Level.BLOCK)]


def test_each_file_is_one_finding_of_a_rule_however_many_lines_have_its_fault(
    tmp_path: Path,
) -> None:
    repo, _, topic = changed(tmp_path)
    told = statements_for(repo.path, topic)
    repo.commit("topic", stored(tmp_path / "new", told, "stranger"))
    (found,) = of_evidence(judged(repo.path))
    assert found.startswith("FT516")
    assert found.endswith(f"and {len(told) - 1} more statements")
