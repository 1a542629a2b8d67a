# SPDX-License-Identifier: Apache-2.0
"""The shape of a hostile case: how the repository is built, and what must be said about it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fasttrack.testing import Content, Repo
from tests.engine import MANIFEST, POLICY, ROOT, SHARED, files

FAST_TRACK, REFUSED, BAD_INPUT, NEEDS_EVIDENCE, ORDINARY = range(5)
Arguments = Sequence[str | Path]
TABLE = ROOT + "variants.json"
GATE = ROOT + "gate.py"


@dataclass(frozen=True)
class Hostile:
    """One hostile input.

    Attributes:
        name: what is hostile, as the id of its test.
        build: writes the repository; returns further arguments of `check`, if any.
        code: the exit code that the command must end with.
        says: text that must be in what it prints: the bound at work.
    """

    name: str
    build: Callable[[Path], Arguments | None]
    code: int
    says: str


def topic(
    where: Path,
    change: Mapping[str, Content],
    *,
    before: Mapping[str, Content] | None = None,
) -> None:
    """A repository whose branch `topic` makes `change`; `main` has the engine and `before`."""
    repo = Repo(where)
    tip = repo.commit("main", dict(files()) | dict(before or {}))
    repo.commit("topic", change, parent=tip)


def manifest(old: str, new: str) -> str:
    """The engine's manifest with one piece of text put for another."""
    return _edited(MANIFEST, old, new)


def policy(old: str, new: str) -> str:
    """The engine's policy, likewise."""
    return _edited(POLICY, old, new)


def _edited(path: str, old: str, new: str) -> str:
    text = files()[path]
    if old not in text:
        raise ValueError(f"{path} does not hold {old!r}")
    return text.replace(old, new)


def wired() -> dict[str, Content]:
    """Policy and manifest that let the shared file be wired at one symbol."""
    place = f"path: {SHARED}, symbol: LIMIT"
    return {
        POLICY: policy("budgets:", f"wiring: [{{{place}, max_lines: 4}}]\nbudgets:"),
        MANIFEST: manifest(
            "  switch:", f"  wiring: [{{{place}, max_lines: 4}}]\n  switch:"
        ).replace("removal: {", f"removal: {{wiring: [{{{place}}}], "),
    }


def tabled() -> dict[str, Content]:
    """A manifest whose unit has a variant table."""
    fields = f"    variants: {TABLE}\n    archs: [sm_90a]\n    data: [{TABLE}]\n    axes:"
    return {MANIFEST: manifest("    axes:", fields)}
