# SPDX-License-Identifier: Apache-2.0
"""What a cell does when it runs: the proof that every cell has its effect, and no twin has one.

* `action`: the governed module is imported, and the effect is seen on the foreign object.
* `value`, `check`: the project's tests run over a kernel that is wrong. Those of the base and of
  the twin fail; those of the change pass.

    cd tests && python -m meaning.executed                 # runs every cell and twin
    cd tests && python -m meaning.executed --every 50      # one in fifty
    cd tests && python -m meaning.executed --effect skip   # effects with this word

It says which are wrong.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from .corpus import KERNELS, Cell, Files, cells, effects, made

Answer = Mapping[str, Any]
Ask = Callable[[Mapping[str, Any]], Answer]
LOADED = "in sys.modules"
"""In a state that asks whether a module is loaded: nothing may load it beforehand."""
ACTING = [effect for effect in effects() if effect.family == "action"]
TESTING = [effect for effect in effects() if "mutant" in effect.data]
SHOWING = [effect for effect in effects() if "shows" in effect.data]
FORKS = Path(__file__).with_name("forks.py")


@contextmanager
def running() -> Iterator[Ask]:
    """A program that answers jobs in their order (`forks.py`); it takes seconds to start."""
    environment = {"PATH": os.environ["PATH"], "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    with subprocess.Popen(
        [sys.executable, "-I", "-W", "ignore", FORKS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    ) as forks:
        assert forks.stdin is not None
        assert forks.stdout is not None
        asked, answered = forks.stdin, forks.stdout

        def ask(job: Mapping[str, Any]) -> Answer:
            print(json.dumps(job), file=asked, flush=True)
            answer = json.loads(answered.readline())
            assert isinstance(answer, dict)
            return answer

        try:
            yield ask
        finally:
            asked.close()


def watched(cell: Cell) -> Mapping[str, Any]:
    """The job that imports the governed module of a cell."""
    change = made(cell)
    acting = [e.data for e in effects() if e.family == "action"]
    states = {data["state"] for data in acting if LOADED not in data.get("state", LOADED)}
    return {
        "files": change.head,
        "module": change.module,
        "call": change.call,
        "modules": sorted({d["module"] for d in acting if LOADED not in d.get("state", "")}),
        "states": sorted(states | {cell.effect.data.get("state", "None")}),
        "events": sorted({data["audit"] for data in acting if "audit" in data}),
    }


def shows(cell: Cell, answer: Answer) -> bool:
    """Whether the effect of a cell was seen."""
    data = cell.effect.data
    if "state" in data:
        return data["state"] in answer.get("states", ())
    return data["audit"] in answer.get("events", ())


def shown(cell: Cell, files: Files) -> Mapping[str, Any]:
    """The job that evaluates what an effect is seen by."""
    return {"files": files, "module": made(cell).module, "shows": cell.effect.data["shows"]}


def trial(files: Files, mutant: str) -> Mapping[str, Any]:
    """The job that runs a project's tests, over a wrong kernel if there is one."""
    if mutant:
        files = {**files, KERNELS: f"{files[KERNELS]}\n\n{mutant}"}
    return {"files": files, "pytest": ["tests"]}


def passes(answer: Answer) -> bool:
    """Whether nothing failed."""
    return not {"failed", "error"} & set(answer)


def fails(answer: Answer) -> bool:
    """Whether a test failed, and nothing else went wrong."""
    return "failed" in answer and "error" not in answer


def still(answer: Answer) -> bool:
    """Whether nothing foreign changed and nothing was seen."""
    return answer == {"states": [], "events": []}


def wrong(cells: Iterable[Cell], ask: Ask) -> list[str]:
    """Cells without their effect and twins that have one, with what was seen of them."""
    found: list[str] = []
    for cell in cells:
        if cell.effect.family == "action":
            found += _acting_wrongly(cell, ask)
        elif "mutant" in cell.effect.data:
            found += _testing_wrongly(cell, ask)
        else:
            found += _showing_wrongly(cell, ask)
    return found


def _acting_wrongly(cell: Cell, ask: Ask) -> Iterator[str]:
    """The effect is not seen, or the twin has any."""
    if not shows(cell, answer := ask(watched(cell))):
        yield f"{cell.name}: {answer}"
    if not still(answer := ask(watched(cell.twin))):
        yield f"{cell.twin.name}: {answer}"


def _testing_wrongly(cell: Cell, ask: Ask) -> Iterator[str]:
    """The tests notice the wrong kernel, or those of the twin do not, or notice more."""
    mutant, honest = cell.effect.data["mutant"], made(cell.twin).head
    if not passes(answer := ask(trial(made(cell).head, mutant))):
        yield f"{cell.name}: {answer}"
    if not fails(answer := ask(trial(honest, mutant))):
        yield f"{cell.twin.name}: {answer}"
    if not passes(answer := ask(trial(honest, ""))):
        yield f"{cell.twin.name}, right kernel: {answer}"


def _showing_wrongly(cell: Cell, ask: Ask) -> Iterator[str]:
    """The expression gives the same before and after, or something else for the twin."""
    trees = (made(cell).base, made(cell).head, made(cell.twin).head)
    base, head, twin = (ask(shown(cell, files)) for files in trees)
    if base != twin or head == base or "shown" not in base:
        yield f"{cell.name}: {base}, {head}, {twin}"


def main() -> None:
    """Runs the product, or a part of it."""
    parser = argparse.ArgumentParser(prog="python -m meaning.executed")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="one cell in N")
    parser.add_argument("--effect", default="", metavar="TEXT", help="effects named like this")
    asked = parser.parse_args()
    named = (cell for cell in cells() if asked.effect in cell.effect.name)
    chosen = list(islice(named, 0, None, asked.every))
    with running() as ask:
        found = wrong(chosen, ask)
    print("\n".join([*found, f"{len(found)} wrong of {len(chosen)} cells and their twins"]))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
