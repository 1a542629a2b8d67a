# SPDX-License-Identifier: Apache-2.0
"""Sigstore bundles through the commands: from a tool's file to a statement that counts."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fasttrack.change.read import read_revision
from fasttrack.cli import main as cli
from fasttrack.config import read_config
from fasttrack.evidence.store import write
from fasttrack.evidence.store_files import SUFFIX
from fasttrack.policy.model import PathClass
from fasttrack.policy.trust import ROOT_FILE
from fasttrack.testing import Repo
from fasttrack.verdict import Outcome
from fasttrack.vocabulary import Kind
from fasttrack.workspace import open_workspace
from tests.engine import KERNEL, POLICY, files
from tests.evidence.keys import ISSUER, SUBJECT
from tests.evidence.lanes import judged, lane, statements_for, statuses
from tests.evidence.sigstore_instance import Instance
from tests.evidence.stores import AS_OF
from tests.evidence.strategies import good
from tests.evidence.units import SOURCES

INSTANCE = Instance()
ROOT = INSTANCE.root()
ROOT_PATH = f"manifests/{ROOT_FILE}"
TRUST_LINES = f"""
trust:
  sigstore_root: "{hashlib.sha256(ROOT).hexdigest()}"
  identities:
    - id: ci
      issuer: {ISSUER}
      subject: {SUBJECT.replace("/heads/main", "/heads/*")}
      roles: [runner]
      kinds: [kernel-test]
      pool: ci
      hardware: [h200]
      valid_from: 2026-01-01
      valid_until: 2026-12-31
"""
BUNDLE = json.dumps(json.loads(INSTANCE.bundle(good(Kind.KERNEL_TEST))), indent=1)
Tree = dict[str, str | bytes]


def tree(root: bytes | None = ROOT) -> Tree:
    found: Tree = {**files(), POLICY: files()[POLICY] + TRUST_LINES}
    return found if root is None else {**found, ROOT_PATH: root}


@pytest.fixture
def on_disk(tmp_path: Path) -> Callable[[Tree], Path]:
    def write(held: Tree) -> Path:
        for path, content in held.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            raw = content if isinstance(content, bytes) else content.encode()
            (tmp_path / path).write_bytes(raw)
        (tmp_path / "kda.sigstore.json").write_text(BUNDLE)
        return tmp_path

    return write


@pytest.mark.parametrize("by", ["repository", "policy file"])
def test_verify_accepts_a_bundle_s_file_by_the_root_beside_the_policy(
    on_disk: Callable[[Tree], Path], by: str, capsys: pytest.CaptureFixture[str]
) -> None:
    where = on_disk(tree())
    asked = ["--repo", str(where)] if by == "repository" else ["--policy", str(where / POLICY)]
    command = ["evidence", "verify", str(where / "kda.sigstore.json"), AS_OF, *asked]
    assert cli.run(command) == 0
    assert capsys.readouterr().out.endswith("1 of 1 statements accepted\n")
    (where / ROOT_PATH).write_bytes(ROOT + b"\n")
    assert cli.run(command) == 1
    assert "not-verifiable: the sigstore root that the policy" in capsys.readouterr().out
    (where / ROOT_PATH).unlink()
    assert cli.run(command) == 1


def test_merge_adds_a_bundle_s_file_to_the_store_where_it_counts(
    on_disk: Callable[[Tree], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    where = on_disk(tree())
    assert (
        cli.run(["evidence", "merge", str(where / "kda.sigstore.json"), "--repo", str(where)]) == 0
    )
    (stored,) = (where / "manifests/evidence").iterdir()
    assert stored.name.endswith(SUFFIX)
    capsys.readouterr()
    command = ["evidence", "verify", str(stored), "--repo", str(where), AS_OF, "--format=json"]
    assert cli.run(command) == 0
    (record,) = json.loads(capsys.readouterr().out)["statements"]
    assert (record["bundle"], record["keys"], record["pools"]) == (True, [], ["ci"])


@pytest.mark.parametrize("root", [ROOT, ROOT + b"\n", None])
def test_the_root_is_read_from_where_the_policy_is_read(tmp_path: Path, root: bytes | None) -> None:
    repo = Repo(tmp_path)
    repo.commit("main", tree(root))  # type: ignore[arg-type]
    (tmp_path / "manifests/keys").mkdir(parents=True, exist_ok=True)
    (tmp_path / ROOT_PATH).write_bytes(ROOT)  # the working tree decides nothing
    with read_revision(tmp_path) as revision:
        config = read_config(revision, folder=None, policy_file=None)
    assert config.policy.trust.root == (ROOT if root == ROOT else None)
    assert config.classes.of(ROOT_PATH) is PathClass.POLICY


def test_a_policy_without_a_root_reads_none(on_disk: Callable[[Tree], Path]) -> None:
    held: Tree = {**files(), ROOT_PATH: ROOT}
    assert open_workspace(on_disk(held)).config.policy.trust.root is None


def test_keys_check_tells_that_the_root_is_another(
    on_disk: Callable[[Tree], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    where = on_disk(tree())
    command = ["keys", "check", "--repo", str(where), AS_OF]
    assert cli.run(command) == 0
    assert capsys.readouterr().out == f"ok    ci\nok    {ROOT_FILE}\n"
    (where / ROOT_PATH).write_bytes(b"{}")
    assert cli.run(command) == 1
    assert f"WRONG {ROOT_FILE}: it is not there" in capsys.readouterr().out


def test_bundles_let_a_change_pass_as_signatures_of_a_key_do(tmp_path: Path) -> None:
    kinds = "[sync-audit, refusal, kernel-test]"
    trust = TRUST_LINES.replace("[h200]", "[h100]").replace("[kernel-test]", kinds)
    repo = Repo(tmp_path / "repo")
    tip = repo.commit("main", {**lane(policy=trust), ROOT_PATH: ROOT})
    repo.commit("topic", {KERNEL: SOURCES[KERNEL] + "SPEED = 2\n"}, parent=tip)
    lines = [INSTANCE.bundle(one) for one in statements_for(repo.path, "topic")]
    files_ = write(tmp_path / "store", lines)
    repo.commit("topic", {f"manifests/evidence/{f.name}": f.read_bytes() for f in files_})
    verdict = judged(repo.path)
    assert set(statuses(verdict)) == {"covered"}
    assert verdict.outcome is Outcome.FAST_TRACK
