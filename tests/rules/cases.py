# SPDX-License-Identifier: Apache-2.0
"""Rule cases as data: loads `tests/cases/rules/<ID>-<slug>/*.yaml` and builds their repositories.

A case says what lies at the target branch, what the change does, and every finding of the verdict:

    why: the mistake that this case would catch
    given:
      policy: {...}          # merged into _base/policy.yaml; lists replace
      manifest: {...}        # merged into _base/manifest.yaml
      head_manifest: {...}   # merged into that; the change brings it; absent = unchanged
      base: {path: content}  # on top of _base/files.yaml
      change: {path: content, or null to delete}
      commits: [{path: content}]  # of the change before its last one, which has `change`
      tip: {path: content}   # what the target branch gained since the change branched off
      tier: kernel-tested    # of the manifest's regions
      keys: {lab: {...}}     # trusted by the policy; a runner `lab` where there is evidence
      new_keys: {mine: {}}   # trusted from this change on
      evidence: [...]        # signed statements; see `tests.rules.evidence`
      executed: {...}        # what running its code has shown; see `fasttrack.ran`
      as_of: 2026-11-29
      labelled: false
    expect: {verdict: refused, findings: [{rule, level, path, saw, line}]}

A `saw` that ends in an ellipsis is a prefix; `line` may be left out; a missing `level` is `route`.
Content is what `fasttrack.policy_fixtures` reads. A path `bytes:6eff` is spelled in hexadecimal.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter

from fasttrack.case import Case
from fasttrack.change.read import read_change
from fasttrack.config import moved_folder, read_base_manifests, read_config, read_head_manifests
from fasttrack.finding import Finding
from fasttrack.policy.model import Policy
from fasttrack.policy_fixtures import ContentSpec, contents
from fasttrack.ran import Executed
from fasttrack.rules import RULES
from fasttrack.rules.base import Rule
from fasttrack.testing import Content, Repo

from .evidence import LABEL, STORE, evidence_files, resolved, trusted

FOLDER = Path(__file__).parent.parent / "cases" / "rules"
AS_OF = date(2026, 11, 29)
POLICY, MANIFEST = "manifests/policy.yaml", "manifests/k3.yaml"
GIVEN = {"policy", "manifest", "head_manifest", "base", "change", "tip", "as_of", "labelled"}
GIVEN |= {"commits", "tier", "keys", "new_keys", "evidence", "executed"}
_CONTENT: TypeAdapter[ContentSpec] = TypeAdapter(ContentSpec)
_EXECUTED = TypeAdapter(Executed)


@dataclass(frozen=True)
class RuleCase:
    """One case file."""

    name: str
    given: Mapping[str, Any]
    verdict: str
    findings: tuple[Mapping[str, Any], ...]

    @property
    def as_of(self) -> date:
        return self.given.get("as_of", AS_OF)

    @property
    def labelled(self) -> bool:
        return self.given.get("labelled", False)


def folder_of(rule: Rule) -> Path:
    """Where the cases of a rule are."""
    return FOLDER / f"{rule.id}-{rule.slug}"


def all_files() -> list[Path]:
    """Every case file of every registered rule."""
    return [file for rule in RULES for file in case_files(rule)]


def case_files(rule: Rule) -> list[Path]:
    """The case files of one rule."""
    return sorted(f for f in folder_of(rule).glob("*.yaml") if f.name != "limits.yaml")


@cache
def load(file: Path) -> RuleCase:
    """Reads one case file; unknown keys are errors."""
    data = _yaml(file)
    assert set(data) == {"why", "given", "expect"}, f"{file.name}: {sorted(data)}"
    assert set(data["given"]) <= GIVEN, f"{file.name}: {sorted(set(data['given']) - GIVEN)}"
    expect = data["expect"]
    assert set(expect) == {"verdict", "findings"}, f"{file.name}: {sorted(expect)}"
    return RuleCase(file.stem, data["given"], expect["verdict"], tuple(expect["findings"]))


def build(case: RuleCase, where: Path) -> Path:
    """Writes the case's repository: branch `main`, and `topic` with the change."""
    given, repo = case.given, Repo(where, bare=True)
    manifest = _merged(_yaml(FOLDER / "_base" / "manifest.yaml"), given.get("manifest", {}))
    policy = _merged(_yaml(FOLDER / "_base" / "policy.yaml"), given.get("policy", {}))
    for region in manifest["scope"]:
        region["tier"] = given.get("tier", region["tier"])
    if keys := given.get("keys", {"lab": {}} if "evidence" in given else {}):
        policy["trust"] = policy.get("trust", {}) | {"keys": trusted(keys)}
    base: dict[str, Any] = {POLICY: _dumped(policy), MANIFEST: _dumped(manifest)}
    base |= _contents(_yaml(FOLDER / "_base" / "files.yaml") | given.get("base", {}), {})
    change = {p: c for p, c in given.get("change", {}).items() if not p.startswith(LABEL)}
    change = _contents(change, base)
    if "head_manifest" in given:
        change[MANIFEST] = _dumped(_merged(manifest, given["head_manifest"]))
    tip = _contents(given["tip"], base) if "tip" in given else None
    before = [_contents(files, base) for files in given.get("commits", ())]
    start = _commit(repo, base, change, tip, before)
    if "evidence" not in given:
        return where
    # Statements speak of the tree with the change; evidence and keys are in no digest.
    kept = evidence_files(given["evidence"], where, start)
    for at, path, content in kept.values():
        {"base": base, "change": change}[at][path] = content
    for path, content in given.get("change", {}).items():
        if path.startswith(LABEL):
            change[resolved(path, kept)] = content
    if "new_keys" in given:
        policy["trust"]["keys"] += trusted(given["new_keys"])
        change[POLICY] = _dumped(policy | {"version": 2})
    _commit(repo, base, change, tip, before, parent=(start,))
    return where


def _commit(
    repo: Repo,
    base: Mapping[str, Content],
    change: Mapping[str, Content],
    tip: Mapping[str, Content] | None,
    before: Iterable[Mapping[str, Content]],
    parent: tuple[str, ...] = (),
) -> str:
    """Writes the branches; the commit of `main` at which `topic` leaves it."""
    files = _spelled({p: c for p, c in base.items() if c is not None})
    start = repo.commit("main", files, parent=parent)
    last = start
    for one in before:
        last = repo.commit("topic", _spelled(one), parent=last)
    repo.commit("topic", _spelled(change), parent=last)
    if tip is not None:
        repo.commit("main", _spelled(tip), parent=start)
    return start


@contextmanager
def opened(case: RuleCase, repo: Path) -> Iterator[Case]:
    """The facts of a case, as `fasttrack.verdict.evaluate` reads them."""
    with read_change(repo, target="main", head="topic") as change:
        config = read_config(change, folder=None, policy_file=None)
        base = read_base_manifests(change, config)
        head = read_head_manifests(change, config)
        facts = Case(change, config, base, head, case.as_of, case.labelled, moved_folder(change))
        yield replace(facts, executed=_EXECUTED.validate_python(case.given.get("executed", {})))


def under(facts: Case, edit: Callable[[Policy], Policy]) -> Case:
    """The same change under an edited policy."""
    return replace(facts, config=replace(facts.config, policy=edit(facts.policy)))


def differences(case: RuleCase, findings: tuple[Finding, ...]) -> list[str]:
    """What the findings lack and what they have too much, in words."""
    left, missing = list(findings), []
    for wanted in case.findings:
        match = next((f for f in left if _fits(wanted, f)), None)
        if match is None:
            missing.append(f"missing: {dict(wanted)}")
        else:
            left.remove(match)
    return missing + [f"extra: {f.rule} {f.level} {f.path!r}:{f.line} {f.saw}" for f in left]


def _fits(wanted: Mapping[str, Any], found: Finding) -> bool:
    saw = wanted["saw"]
    told = found.saw.startswith(saw[:-1]) if saw.endswith("…") else found.saw == saw
    path = wanted.get("path", "")
    in_store = path.startswith(LABEL) and found.path.startswith(STORE)
    place = (found.rule, found.level) == (wanted["rule"], wanted.get("level", "route"))
    place = place and (in_store or found.path == _path(path))
    return told and place and wanted.get("line", found.line) == found.line


def _merged(base: Any, over: Any) -> Any:
    if isinstance(base, dict) and isinstance(over, dict):
        merged = base | {key: _merged(base.get(key), value) for key, value in over.items()}
        return {key: value for key, value in merged.items() if value is not None}
    return over


def _contents(specs: Mapping[str, Any], before: Mapping[str, Content]) -> dict[str, Content]:
    def content(path: str, spec: Any) -> Content:
        return contents(_CONTENT.validate_python(spec), before.get(path), path)

    return {path: None if spec is None else content(path, spec) for path, spec in specs.items()}


def _spelled(files: Mapping[str, Content]) -> dict[str, Content]:
    return {_path(path): content for path, content in files.items()}


def _path(path: str) -> str:
    if not path.startswith("bytes:"):
        return path
    return bytes.fromhex(path.removeprefix("bytes:")).decode("utf-8", "surrogateescape")


def _dumped(data: Any) -> str:
    return yaml.dump(data, Dumper=yaml.CSafeDumper, sort_keys=False)


def _yaml(file: Path) -> Any:
    return yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
