# SPDX-License-Identifier: Apache-2.0
"""What an import may do to others, and that the probe sees it and nothing else."""

from pathlib import Path

import pytest

from fasttrack.executed import probe as probe_module
from fasttrack.executed.probe import import_probe
from fasttrack.ran import Probe
from fasttrack.testing import Content
from tests.executed.scratch import TIMEOUT_S, cases, facts, sandboxed, silent

CASES = cases("probe")
EFFECTS, HONEST = CASES["effects"], CASES["honest"]


def probed(where: Path, base: dict[str, Content], change: dict[str, Content]) -> Probe:
    with facts(where, base, change) as case:
        return import_probe(case, TIMEOUT_S, silent)


@sandboxed
def test_every_effect_is_seen_where_it_comes_from_and_no_honest_code_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe_module, "WATCHED", 100)
    names = {f"engine/foo/e{n:02}.py": name for n, name in enumerate(EFFECTS)}
    change: dict[str, Content] = {path: EFFECTS[name] for path, name in names.items()}
    change |= {f"engine/foo/{name}.py": source for name, source in HONEST.items()}

    probe = probed(tmp_path, {}, change)

    seen = {names.get(d.path, d.path): (d.what, d.how) for d in probe.differences}
    assert probe.unknown == ()
    assert set(seen) == set(EFFECTS), (set(EFFECTS) ^ set(seen), seen)
    assert (probe.run, probe.modules) == ("failed", len(change) + 2)


@sandboxed
def test_what_the_target_branch_does_itself_is_not_the_change_s(tmp_path: Path) -> None:
    effect = EFFECTS["another default"]
    base: dict[str, Content] = {"engine/foo/attention.py": effect}
    probe = probed(tmp_path, base, {"engine/foo/attention.py": effect + "BLOCK = 64\n"})
    assert probe == Probe(modules=2)
    assert probe.run == "passed"


@sandboxed
def test_shared_code_that_imports_the_path_is_compared_between_the_trees(tmp_path: Path) -> None:
    shared = "from engine.foo import attention\nLIMIT = 1\ndef f(): pass\n"
    effect = "def late():\n    import engine.late\n    engine.late.LIMIT = 2\n"
    base: dict[str, Content] = {
        "engine/late.py": shared,
        "engine/foo/attention.py": "X = 1\n",
        "engine/foo/user.py": "import engine.late\n",
    }
    change: dict[str, Content] = {"engine/foo/user.py": effect + "late()\n"}
    probe = probed(tmp_path, base, change)
    assert [(d.what, d.how) for d in probe.differences] == [("engine.late.LIMIT", "is 2")]


@sandboxed
def test_a_module_that_can_not_be_imported_is_told_unless_it_is_as_before(tmp_path: Path) -> None:
    missing = "import no_such_package_at_all\n"
    base: dict[str, Content] = {"engine/foo/old.py": missing}
    change: dict[str, Content] = {
        "engine/foo/new.py": missing,
        "engine/foo/attention.py": "X = 1\n",
    }
    probe = probed(tmp_path, base, change)
    assert [unknown.path for unknown in probe.unknown] == ["engine/foo/new.py"]
    assert "ModuleNotFoundError: No module named 'no_such" in probe.unknown[0].reason
    assert probe.run == "failed"


@sandboxed
@pytest.mark.parametrize("name", CASES["breaks"])
def test_code_that_breaks_the_probe_is_could_not_tell(name: str, tmp_path: Path) -> None:
    source, reason = CASES["breaks"][name]["source"], CASES["breaks"][name]["told"]
    with facts(tmp_path, {}, {"engine/foo/attention.py": source}) as case:
        probe = import_probe(case, 3, silent)
    assert [u.reason.startswith(f"after the change: {reason}") for u in probe.unknown] == [True], (
        probe.unknown
    )


@sandboxed
@pytest.mark.parametrize(
    "source",
    [
        "raise SystemExit(3)",
        "raise KeyboardInterrupt",
        "class E(BaseException):\n    def __str__(self): raise ValueError\nraise E",
        "import sys\nsys.setrecursionlimit(10)",
        "print('x' * 50_000_000)",
    ],
    ids=["exit", "interrupt", "error without words", "no recursion", "much output"],
)
def test_code_that_raises_or_prints_ends_no_probe_unsaid(source: str, tmp_path: Path) -> None:
    with facts(tmp_path, {}, {"engine/foo/attention.py": source + "\n"}) as case:
        probe = import_probe(case, TIMEOUT_S, silent)
    assert probe.run == ("passed" if source.startswith("print") else "failed")


@pytest.mark.parametrize(
    ("count", "looks"), [(0, 0), (1, 1), (16, 16), (17, 9), (32, 16), (33, 11)]
)
def test_looks_are_bounded_and_the_last_module_has_one(count: int, looks: int) -> None:
    names = [f"m{n}" for n in range(count)]
    watched = probe_module._watched(names)
    assert len(watched) == looks
    assert [*watched[-1:]] == names[-1:]
