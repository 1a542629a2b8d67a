# SPDX-License-Identifier: Apache-2.0
"""What `init` proposes is valid, says what it was told, and does no more than it says."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.adopt.layouts import LAYOUTS
from fasttrack.adopt.propose import WORKFLOW, codeowners_lines, propose
from fasttrack.errors import InputError, Problem
from fasttrack.manifest.load import load_manifest
from fasttrack.policy.load import load_policy
from tests.engine import ANSWERS, MANIFEST, POLICY


@given(
    layout=st.sampled_from(sorted(LAYOUTS)),
    roots=st.lists(
        st.from_regex(r"[a-z_]{1,8}(/[a-zA-Z0-9_.-]{1,8}){0,3}/?", fullmatch=True),
        min_size=1,
        max_size=4,
        unique_by=lambda root: root.strip("/"),
    ),
    day=st.dates(date(2020, 1, 1), date(2090, 1, 1)),
)
def test_any_roots_give_files_that_load_or_an_error_that_names_them(
    layout: str, roots: list[str], day: date
) -> None:
    answers = replace(ANSWERS, layout=LAYOUTS[layout], roots=tuple(roots), as_of=day)
    problems: tuple[Problem, ...] = ()
    proposed: Mapping[str, str] = {}
    try:
        proposed = propose(answers)
    except InputError as error:
        problems = error.problems
    if not proposed:
        assert problems
        assert all(":" in p.where and p.want for p in problems)
        return
    texts = [t for p, t in proposed.items() if p.startswith("manifests/")]
    policy, manifest = load_policy(texts[0], "p"), load_manifest(texts[1], "m")
    assert manifest.code.roots == tuple(roots)
    assert [a.removesuffix("**") for a in policy.roots.allow] == roots
    assert (manifest.lease.expires - manifest.lease.granted).days <= policy.lease.max_days


@pytest.mark.parametrize("root", ["/etc/", "../x/", "a/../b/", "a b/*", "", "\u202e/"])
def test_a_root_that_is_no_path_of_the_repository_is_refused(root: str) -> None:
    with pytest.raises(InputError):
        propose(replace(ANSWERS, roots=(root,)))


def test_code_owners_cover_the_policy_and_every_root() -> None:
    lines = codeowners_lines(replace(ANSWERS, roots=("a/b/", "c.py"))).splitlines()
    assert lines == ["/manifests/ @owner", "/a/b/ @owner", "/c.py @owner"]


def test_the_workflow_reads_only_and_runs_no_code_of_the_pull_request() -> None:
    workflow = yaml.safe_load(propose(ANSWERS)[WORKFLOW])
    assert workflow["permissions"] == {"contents": "read"}
    job = workflow["jobs"]["check"]
    assert "permissions" not in job
    for step in job["steps"]:
        if "uses" in step:
            assert len(step["uses"].partition("@")[2]) == 40, "pinned by commit"
        else:
            assert "${{" not in step["run"], "expressions reach the shell as environment only"


@pytest.mark.parametrize(
    ("code", "passes"), [(0, True), (1, False), (2, False), (3, True), (4, True), (70, False)]
)
def test_the_workflow_fails_on_refusals_and_faults_alone(
    tmp_path: Path, code: int, passes: bool
) -> None:
    workflow = yaml.safe_load(propose(ANSWERS)[WORKFLOW])
    script = workflow["jobs"]["check"]["steps"][-1]["run"]
    (tmp_path / "fasttrack").write_text(f"#!/bin/sh\nexit {code}\n")
    (tmp_path / "fasttrack").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "BASE": "main", "HEAD": "abc"}
    done = subprocess.run(["bash", "-e", "-c", script], env=environment, check=False)
    assert (done.returncode == 0) == passes


def test_proposed_files_are_those_that_the_guide_names() -> None:
    assert set(propose(ANSWERS)) == {POLICY, MANIFEST, WORKFLOW}
