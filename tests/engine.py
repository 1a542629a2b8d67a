# SPDX-License-Identifier: Apache-2.0
"""A small engine under the policy that `init` proposes, for tests of whole commands."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path

from fasttrack.adopt.layouts import GENERIC
from fasttrack.adopt.propose import Answers, propose
from fasttrack.testing import Content, Repo

AS_OF = date(2026, 11, 29)
ROOT = "engine/foo/"
KERNEL = ROOT + "attention.py"
SHARED = "engine/scheduler.py"
POLICY = "manifests/policy.yaml"
MANIFEST = "manifests/foo.yaml"
ANSWERS = Answers(
    GENERIC, (ROOT,), "manifests", "owner", "backup", "example/foo", date(2026, 11, 1)
)


def files() -> dict[str, str]:
    """The target branch's files."""
    return dict(propose(ANSWERS)) | {KERNEL: "BLOCK = 32\n", SHARED: "LIMIT = 1\n"}


def engine(where: Path, changes: Mapping[str, Mapping[str, Content]]) -> Repo:
    """A repository with `main` and one branch per change."""
    repo = Repo(where)
    tip = repo.commit("main", files())
    for branch, change in changes.items():
        repo.commit(branch, change, parent=tip)
    return repo
