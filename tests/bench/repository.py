# SPDX-License-Identifier: Apache-2.0
"""The synthetic repository of the benchmark: 7,000 files, a governed path, and changes to judge."""

import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from fasttrack.adopt.layouts import GENERIC
from fasttrack.adopt.propose import Answers, propose
from fasttrack.testing import Repo

ROOT = "engine/models/foo/"
MANIFEST = "manifests/foo.yaml"
FILES = 7000
WIDE = 3001


def module(number: int, lines: int) -> str:
    """A Python module of so many lines, unlike any other."""
    body = [f'"""Module {number}."""', "", "import math", ""]
    for i in range((lines - 4) // 4):
        body += ["", "", f"def f{number}_{i}(x):", f"    return math.sin(x + {number * i})"]
    return "\n".join(body) + "\n"


def tree() -> dict[str, str]:
    """Path to text; 300 files lie in the roots and import each other in a chain."""
    answers = Answers(
        GENERIC, (ROOT,), "manifests", "owner", "backup", "org/model", date(2026, 11, 1)
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
    """Branches `main`, `sixty`, `wide`; `tested` claims a tier, `sixty-tested` starts there."""
    files = tree()
    repo = Repo(where)
    tip = repo.commit("main", files)
    repo.commit("sixty", _sixty(files), parent=tip)
    wide = {p: text + "Y = 1\n" for p, text in sorted(files.items()) if p.endswith(".py")}
    repo.commit("wide", dict(list(wide.items())[:WIDE]), parent=tip)
    claims = files[MANIFEST].replace("tier: declared", "tier: model-evaluated")
    tested = repo.commit("tested", {MANIFEST: claims}, parent=tip)
    repo.commit("sixty-tested", _sixty(files), parent=tested)
    for path in files:  # `scope explain` reads the working tree
        if path.startswith("manifests/"):
            (where / path).parent.mkdir(exist_ok=True)
            (where / path).write_text(files[path])


def _sixty(files: Mapping[str, str]) -> dict[str, str]:
    inside = sorted(p for p in files if p.startswith(ROOT))
    return {p: files[p] + module(9000 + i, 134) for i, p in enumerate(inside[:60])}


if __name__ == "__main__":
    build(Path(sys.argv[1]))
