# SPDX-License-Identifier: Apache-2.0
"""What one check costs in processes and reads, which unlike time is the same on every machine."""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from fasttrack.change.git import Git, Process
from fasttrack.change.objects import Objects
from fasttrack.verdict import Request, evaluate
from tests.bench.check import run, warm_bytecode
from tests.engine import AS_OF, MANIFEST, ROOT, engine, files

HANDFUL = 8


class Counts:
    """Commands that were started and objects that were asked for, during one check."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commands: list[str] = []
        self.reads: Counter[str] = Counter()
        spawn, fetch = Git._spawn, Objects._fetch

        def counted_spawn(git: Git, argv: list[str], *rest: object) -> Process:
            self.commands.append(next(word for word in argv[1:] if not word.startswith("-")))
            return spawn(git, argv, *rest)  # type: ignore[arg-type]

        def counted_fetch(objects: Objects, oids: Sequence[str], keep: str) -> None:
            self.reads.update(oids)
            fetch(objects, oids, keep)

        monkeypatch.setattr(Git, "_spawn", counted_spawn)
        monkeypatch.setattr(Objects, "_fetch", counted_fetch)


def _check(where: Path, count: int, monkeypatch: pytest.MonkeyPatch, *, moved: bool) -> Counts:
    """Judge `count` new files, with evidence owed; `moved`: main has gone on since the branch."""
    added = {f"{ROOT}d{n % 50}/m{n}.py": f"import math\nX = {n}\n" for n in range(count)}
    repo = engine(where, {})
    tip = repo.commit(
        "main", {MANIFEST: files()[MANIFEST].replace("tier: declared", "tier: kernel-tested")}
    )
    repo.commit("topic", added, parent=tip)
    if moved:
        repo.commit("main", {"README.md": "later\n"}, parent=tip)
    with monkeypatch.context() as patch:
        counts = Counts(patch)
        evaluate(Request(where, target="main", head="topic"), AS_OF)
    return counts


@pytest.mark.parametrize("moved", [False, True], ids=["same-tip", "moved-tip"])
def test_processes_do_not_grow_with_the_change_and_no_object_is_read_twice(
    moved: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = _check(tmp_path / "small", 60, monkeypatch, moved=moved)
    large = _check(tmp_path / "large", 3001, monkeypatch, moved=moved)

    assert small.commands == large.commands
    assert len(large.commands) <= HANDFUL + 3 * moved
    assert [oid for oid, times in large.reads.items() if times > 1] == []
    assert len(large.reads) >= 3001  # the counter counts


def test_what_the_benchmark_starts_keeps_bytecode_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (tmp_path / "mine.py").write_text("import sys; sys.exit(sys.dont_write_bytecode)")
    argv = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import mine"]
    assert run(argv).code == 1
    with warm_bytecode():
        assert run(argv).code == 0
    assert run(argv).code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]
