# SPDX-License-Identifier: Apache-2.0
"""The matrix: which cells the rules catch, which only running catches, and which twins they blame.

    cd tests && python -m meaning.matrix                # static; stores the score
    cd tests && python -m meaning.matrix --off FT201    # without one rule
    cd tests && python -m meaning.matrix --run          # runs what is missed; stores that too

A letter a cell: `s` caught without running, `r` by the import probe or the collection of tests,
`b` by the target branch's tests, `-` missed; `!` after it: an alarm about the honest twin.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fasttrack.case import Case
from fasttrack.finding import Finding

from .corpus import FOLDER, Cell, cells, disguises, effects, made
from .judged import MEANING, alarms, answers, case_of, findings

STORED = FOLDER / "score.json"
PROBING = frozenset({"FT230", "FT416"})
"""Rules that judge what the import probe and the collection of tests have seen."""
TRYING = frozenset({"FT414", "FT415"})
"""Rules that judge what the target branch's tests came to over the change's code."""
RAN = PROBING | TRYING
Ran = Mapping[str, Sequence[str]]
"""Cells that are missed without running, by name, and the rules that catch them with it."""


@dataclass(frozen=True)
class Judged:
    """One cell and its twin, judged.

    Attributes:
        cell: the cell.
        by: rules that caught it without running anything.
        blamed: what is said about its honest twin.
        ran: rules that caught it by what running has shown; empty when that was not needed.
    """

    cell: Cell
    by: frozenset[str]
    blamed: tuple[Finding, ...]
    ran: frozenset[str] = frozenset()

    @property
    def letter(self) -> str:
        """The cell in the matrix."""
        ran = "b" if self.ran & TRYING else "r" if self.ran else "-"
        return ("s" if self.by else ran) + ("!" if self.blamed else "")


def judged(*, off: str = "", run: bool = False) -> tuple[Judged, ...]:
    """Every cell, judged.

    Args:
        off: a rule that is switched off.
        run: run what the static pass misses, and the twin of every cell that was run.
    """
    return tuple(_judged(cell, off, run) for cell in cells())


def score(found: Sequence[Judged], ran: Ran) -> dict[str, Any]:
    """The totals, and what each rule alone is good for.

    Args:
        found: every cell, judged without running.
        ran: what running has shown of those that are missed then.
    """
    ways = [j.by or frozenset(ran.get(j.cell.name, ())) for j in found]
    return {
        "cells": len(found),
        "static": sum(bool(j.by) for j in found),
        "missed": [j.cell.name for j in found if not j.by],
        "blamed": [j.cell.twin.name for j in found if j.blamed],
        "by running": ran,
        "with running": sum(map(bool, ways)),
        "lost without": {
            rule: lost for rule in sorted(_rules()) if (lost := sum(by == {rule} for by in ways))
        },
    }


def shown(found: Sequence[Judged]) -> str:
    """The matrix as a table for people."""
    names = disguises()
    by_place = {(j.cell.effect.name, j.cell.disguise): j.letter for j in found}
    lines = [f"{chr(ord('a') + n)} = {name}" for n, name in enumerate(names)]
    lines.append(f"\n{'':45}" + "".join(f"{chr(ord('a') + n):3}" for n in range(len(names))))
    for effect in effects():
        row = "".join(f"{by_place.get((effect.name, name), ''):3}" for name in names)
        lines.append(f"{effect.name:45}{row}")
    return "\n".join((*lines, "", _totals(found)))


def _totals(found: Sequence[Judged]) -> str:
    total, static = len(found), sum(bool(j.by) for j in found)
    ran = sum(bool(j.by or j.ran) for j in found)
    blamed = sum(bool(j.blamed) for j in found)
    more = f", {ran} with it ({ran / total:.1%})" if ran > static else ""
    return (
        f"{total} cells: {static} caught without running ({static / total:.1%}){more};"
        f" {blamed} of {total} honest twins blamed"
    )


def _judged(cell: Cell, off: str, run: bool) -> Judged:
    by = answers(cell, findings(case_of(made(cell)), off=off))
    blamed = alarms(findings(case_of(made(cell.twin)), off=off))
    if by or not run:
        return Judged(cell, by, blamed)
    more = alarms(findings(after_running(cell.twin), off=off))
    return Judged(cell, by, blamed + more, told(after_running(cell), off=off))


def after_running(cell: Cell) -> Case:
    """The facts of a cell once it has run: the target branch's tests where an effect asks for them.

    Other cells are imported under the probe, and their tests collected.
    """
    from fasttrack.executed.run import Asked, execute  # noqa: PLC0415  (what a static run spares)

    case = case_of(made(cell))
    trying = bool(cell.effect.rules & TRYING)
    return replace(case, executed=execute(case, Asked(probe=not trying, base_tests=trying)))


def told(case: Case, *, off: str = "") -> frozenset[str]:
    """Rules that caught a cell by what running has shown; that it could not run is no catch."""
    found = alarms(findings(case, off=off))
    return frozenset(f.rule for f in found if f.rule in RAN and not f.unknown)


def _rules() -> frozenset[str]:
    known = {rule.id for rule in MEANING}
    asked = RAN.union(*(effect.rules for effect in effects()))
    return asked & known


def _explained(found: Sequence[Judged]) -> str:
    """What the misses and the blamed twins are, one a line."""
    lines = [f"missed  {j.cell.name}" for j in found if not (j.by or j.ran)]
    lines += [f"blamed  {j.cell.twin.name}: {_said(j.blamed[0])}" for j in found if j.blamed]
    return "\n".join(lines)


def _said(finding: Finding) -> str:
    return f"{finding.rule} {finding.path}:{finding.line} {finding.saw}"


def stored() -> Mapping[str, Any]:
    """The score that is kept beside the corpus."""
    data = json.loads(STORED.read_text(encoding="utf-8"))
    assert isinstance(data, dict)
    return data


def main() -> None:
    """Prints the matrix."""
    parser = argparse.ArgumentParser(prog="python -m meaning.matrix")
    parser.add_argument("--off", default="", metavar="RULE", help="switch this rule off")
    parser.add_argument("--run", action="store_true", help="run what the static pass misses")
    parser.add_argument("--why", action="store_true", help="list the misses and blamed twins")
    asked = parser.parse_args()
    found = judged(off=asked.off, run=asked.run)
    if not asked.off:
        ran = {j.cell.name: sorted(j.ran) for j in found if not j.by}
        kept = score(found, ran if asked.run else stored()["by running"])
        STORED.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    print(shown(found))
    if asked.why:
        print(_explained(found))


if __name__ == "__main__":
    main()
