# SPDX-License-Identifier: Apache-2.0
"""A policy that says something doubtful is not a policy."""

import re
from pathlib import Path

import pytest

from fasttrack.errors import InputError
from fasttrack.policy.load import load_policy
from tests.engine import POLICY, files

TEXT = files()[POLICY]
EDITS = [
    ("version: 1", "version: 0", "version"),
    ("mode: observe", "mode: watch", "mode"),
    ("files: 120", "files: 0", "budgets.files"),
    ("files: 120", 'files: "120"', "budgets.files"),
    ("files: 120", "files: 12.0", "budgets.files"),
    ("files: 120", "file: 120", "file"),
    ("  compiled: [sync-audit, refusal]\n", "", "compiled"),
    (
        "stress-tested: [sync-audit, refusal, kernel-test, stress]",
        "stress-tested: [stress]",
        "less",
    ),
    ("tiers:\n", "tiers:\n  declared: [refusal]\n", "declared"),
    ("admit_tier: stress-tested", "admit_tier: tested", "admit_tier"),
    ("lease: {max_days: 180}", "lease: {max_days: 0}", "max_days"),
    ("arch: sm_90a, memory_gb: 80", "arch: SM 90, memory_gb: 80", "arch"),
    ('match: ["tests/**"', 'match: ["/tests/**"', "paths"),
    ('match: ["tests/**"', 'match: ["tests/**b"', "paths"),
    ("approvals: {codeowners: true}", "bind: [/engine/ops.py]", "bind"),
    ("approvals: {codeowners: true}", "approvals: {policy_changes: 1}", "policy_changes"),
    ("approvals: {codeowners: true}", "rules: {FT101: fatal}", "FT101"),
    ("approvals: {codeowners: true}", "rules: {first: note}", "first"),
    (
        "domain_gpus: 72}",
        "domain_gpus: 72, bandwidth_tb_s: {peak: 4.0, sustained: 5.0}}",
        "exceeds peak",
    ),
]


@pytest.mark.parametrize(("old", "new", "named"), EDITS)
def test_a_doubtful_policy_is_refused_with_its_place(old: str, new: str, named: str) -> None:
    assert old in TEXT
    with pytest.raises(InputError) as caught:
        load_policy(TEXT.replace(old, new, 1), "policy.yaml")
    assert named in str(caught.value)
    assert re.search(r"policy\.yaml:\d+:\d+: ", str(caught.value))


def test_all_problems_are_reported_in_one_pass() -> None:
    broken = TEXT
    for old, new, _ in (EDITS[0], EDITS[1], EDITS[2], EDITS[9]):
        broken = broken.replace(old, new, 1)
    with pytest.raises(InputError) as caught:
        load_policy(broken, "policy.yaml")
    assert len(caught.value.problems) == 4


def test_this_repositorys_policy_is_valid() -> None:
    root = Path(__file__).resolve().parents[2]
    policy = load_policy((root / "manifests/policy.yaml").read_bytes(), "policy.yaml")
    assert policy.hardware["h200"].bandwidth_tb_s is not None
