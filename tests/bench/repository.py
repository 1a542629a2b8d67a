# SPDX-License-Identifier: Apache-2.0
"""The synthetic repository of the benchmark: 7,000 files, a governed path, and changes to judge."""

import hashlib
import sys
import tempfile
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from fasttrack.adopt.layouts import GENERIC
from fasttrack.adopt.propose import Answers, propose
from fasttrack.evidence.subject import unit_of
from fasttrack.manifest.cells import Cell
from fasttrack.testing import Content, Repo
from fasttrack.vocabulary import Kind
from tests.evidence.keys import key
from tests.evidence.lanes import owed_at, shown, stored, trusting

ROOT = "engine/models/foo/"
MANIFEST = "manifests/foo.yaml"
POLICY = "manifests/policy.yaml"
POOLS = ("lab", "cloud")
STATEMENTS = 500
FILES = 7000
WIDE = 3001
MODEL = {"model": "org/model", "weights": "0" * 64}
"""What an evaluation says of the model and its weights: what the manifest does."""


def module(number: int, lines: int) -> str:
    """A Python module of so many lines, unlike any other."""
    body = [f'"""Module {number}."""', "", "import math", ""]
    for i in range((lines - 4) // 4):
        body += ["", "", f"def f{number}_{i}(x):", f"    return math.sin(x + {number * i})"]
    return "\n".join(body) + "\n"


def tree() -> dict[str, str]:
    """Path to text; 300 files lie in the roots and import each other in a chain."""
    answers = Answers(
        GENERIC, (ROOT,), "manifests", "owner", "backup", MODEL["model"], date(2026, 11, 1)
    )
    files = dict(propose(answers))
    files[f"{ROOT}gate.py"] = "from .unit0.m0 import f0_0\n"
    files |= {
        f"{ROOT}unit{n % 12}/m{n}.py": module(n, 120)
        + f"from ..unit{(n + 1) % 12} import m{n + 1}\n"
        for n in range(300)
    }
    files |= {f"engine/shared{n % 70}/m{n}.py": module(n, 60) for n in range(300, 5000)}
    rest = range(5000, FILES - len(files) + 5000)
    return files | {f"tests/t{n % 40}/test_m{n}.py": module(n, 40) for n in rest}


def build(where: Path) -> None:
    """Branches `main`, `sixty`, `wide`; `tested` claims a tier, `sixty-tested` starts there.

    `kept` has evidence for that tier, `sixty-kept` makes it stale, `sixty-shown` brings its own.
    `told` has what `sixty-told` needs already; `sixty-full` starts at `bare` and brings as much.
    """
    files = tree()
    repo = Repo(where)
    tip = repo.commit("main", files)
    repo.commit("sixty", _sixty(files), parent=tip)
    wide = {p: text + "Y = 1\n" for p, text in sorted(files.items()) if p.endswith(".py")}
    repo.commit("wide", dict(list(wide.items())[:WIDE]), parent=tip)
    claims = files[MANIFEST].replace("tier: declared", "tier: model-evaluated")
    tested = repo.commit("tested", {MANIFEST: claims}, parent=tip)
    repo.commit("sixty-tested", _sixty(files), parent=tested)
    _with_evidence(repo, where, files | {MANIFEST: claims}, tip)
    for path in files:  # `scope explain` reads the working tree
        if path.startswith("manifests/"):
            (where / path).parent.mkdir(exist_ok=True)
            (where / path).write_text(files[path])


def _with_evidence(repo: Repo, where: Path, files: Mapping[str, str], tip: str) -> None:
    """Every cell is shown by two pools, again and again; the unit has tests of its own.

    With `tests/**` it would have 2,000, and so would its digest.
    """
    manifest = files[MANIFEST].replace('tests: ["tests/**"]', 'tests: ["tests/t0/**"]')
    keys = [key(pool, hardware=("h100", "h200")) for pool in POOLS]
    policy = files[POLICY] + trusting(*keys, thresholds={"kernel-test": 2})
    bare = repo.commit("bare", {MANIFEST: manifest, POLICY: policy}, parent=tip)
    kept = repo.commit("kept", _shown(where, "bare", STATEMENTS), parent=bare)
    sixty: dict[str, Content] = {**_sixty(files)}
    changed = repo.commit("sixty-kept", sixty, parent=kept)
    repo.commit("sixty-shown", _shown(where, "sixty-kept", 1), parent=changed)
    full = _shown(where, "sixty-kept", STATEMENTS)
    repo.commit("sixty-told", sixty, parent=repo.commit("told", full, parent=bare))
    repo.commit("sixty-full", sixty | full, parent=bare)


def _shown(where: Path, revision: str, least: int) -> Mapping[str, Content]:
    """Files of evidence: rounds over all cells, each a plan, until there are enough statements."""
    cells, inputs = owed_at(where, revision)
    found: dict[str, Content] = {}
    for number in range(-(-least // (len(POOLS) * len(cells)))):
        for pool in POOLS:
            run = {"plan": _random(revision, number), "run": _random(revision, number, pool)}
            told = [shown(c, inputs[unit_of(c)], content=_content(c), **run) for c in cells]
            with tempfile.TemporaryDirectory() as folder:
                found |= stored(Path(folder), told, pool)
    return found


def _content(cell: Cell) -> Mapping[str, str]:
    return MODEL if cell.kind is Kind.MODEL_EVAL else {}


def _random(*what: object) -> str:
    """An id like those of plans and runs."""
    return hashlib.sha256(repr(what).encode()).hexdigest()[:32]


def _sixty(files: Mapping[str, str]) -> dict[str, str]:
    inside = sorted(p for p in files if p.startswith(ROOT))
    return {p: files[p] + module(9000 + i, 134) for i, p in enumerate(inside[:60])}


if __name__ == "__main__":
    build(Path(sys.argv[1]))
