# SPDX-License-Identifier: Apache-2.0
"""The files in which a change may turn a path on or take its fallback away."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from fasttrack.case import Case, in_roots
from fasttrack.change.tree import ABSENT, Side
from fasttrack.config import judged_or_head
from fasttrack.errors import FactUnavailable
from fasttrack.manifest.model import Manifest, Switch
from fasttrack.meaning.source import is_python, is_regular, source_of


@dataclass(frozen=True)
class Pair:
    """A file at the target's tip and after the merge.

    Attributes:
        path: repository path.
        old: what the target's tip has there.
        new: what the merge leaves there.
    """

    path: str
    old: Side
    new: Side


def switch_of(case: Case, manifest: Manifest) -> Switch:
    """The switch of a path: the target branch's word for it, where it has one."""
    known = next((m for m in case.base.valid.values() if m.name == manifest.name), manifest)
    return known.code.switch


def changed_pair(case: Case, path: str) -> Pair | None:
    """The two sides of a Python file that the merge changes; None for any other."""
    if not is_python(path):
        return None
    base, head = case.change.base.get(path), judged_or_head(case.change).get(path)
    pair = Pair(path, base or ABSENT, head or ABSENT)
    return pair if pair.old != pair.new else None


def deciding(case: Case, manifest: Manifest) -> Iterator[Pair]:
    """Changed gate and wired files of a path."""
    wired = [place.path for place in manifest.code.wiring]
    for path in dict.fromkeys([*manifest.code.gate, *wired]):
        if pair := changed_pair(case, path):
            yield pair


def owned(case: Case, manifest: Manifest) -> Iterator[Pair]:
    """Changed files of a path: its roots and its wired files."""
    wired = {place.path for place in manifest.code.wiring}
    for entry in case.entries:
        mine = in_roots(manifest, entry.path) or entry.path in wired
        if mine and (pair := changed_pair(case, entry.path)):
            yield pair


def text(case: Case, side: Side) -> str:
    """The text of a side; empty where there is none that can be read (FT219 tells that)."""
    if is_regular(side):
        with suppress(FactUnavailable):
            return source_of(case, side)
    return ""


def spelled(name: str) -> str:
    """A name without what differs between an option, a variable and a constant."""
    return name.strip("-_").replace("-", "_").lower()
