# SPDX-License-Identifier: Apache-2.0
"""Hostile input to the whole command: always a verdict or a problem, within time and memory."""

from pathlib import Path

import pytest

from tests.hostile import bombs, objects, patches, paths, scopes, texts
from tests.hostile.case import Hostile
from tests.hostile.process import fasttrack

MEMORY_MB = 500
CASES = (*objects.CASES, *texts.CASES, *scopes.CASES, *paths.CASES, *patches.CASES, *bombs.CASES)


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name.replace(" ", "-")) for c in CASES])
def test_hostile_input_is_bounded(case: Hostile, tmp_path: Path) -> None:
    more = case.build(tmp_path / "repo") or ("--head", "topic")
    run = fasttrack(
        "check", "--repo", "repo", "--as-of", "2026-11-29", "--format", "json", *more, cwd=tmp_path
    )
    assert run.code == case.code, run.err or run.out
    assert case.says in run.out + run.err
    assert run.peak_mb <= MEMORY_MB
