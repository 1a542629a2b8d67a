# SPDX-License-Identifier: Apache-2.0
"""All evidence that there is for a change, wherever it lies: only signatures decide what counts.

Read together: the store at the target's tip, the one after the merge, and a folder that was handed
in. Keys and thresholds are the caller's policy's. Nothing slow happens for cells of which no
statement speaks: signatures are verified of those alone that somebody asks about, which changes
nothing, because statements of different cells never agree or contradict each other.
"""

from collections.abc import Iterable, Iterator, Set
from datetime import date
from pathlib import Path

from fasttrack.change.change import Change
from fasttrack.change.tree import Tree
from fasttrack.errors import FactUnavailable
from fasttrack.evidence.accept import accept
from fasttrack.evidence.coverage import Evidence
from fasttrack.evidence.machine_code import audits_of
from fasttrack.evidence.store import FOLDER, Contents, Stored, read_folder, read_tree
from fasttrack.evidence.store_files import SUFFIXES
from fasttrack.manifest.cells import CellId
from fasttrack.policy.trust import Trust


def gather(change: Change, trees: Iterable[Tree], folder: str, more: Path | None) -> list[Stored]:
    """Every statement that can be read, each envelope once.

    Args:
        change: where blobs are read.
        trees: the trees whose stores count; those with the same files are read once.
        folder: the configuration folder.
        more: a directory of evidence files beside them.

    Raises:
        FactUnavailable: a tree can not be listed, or holds more than is read.
        InputError: the directory can not be read.
    """
    store = f"{folder}/{FOLDER}"
    found: dict[object, Stored] = {}
    read: set[frozenset[tuple[str, str]]] = set()
    for tree in trees:
        files = frozenset(_files(tree, store))
        if files and files not in read:
            read.add(files)
            for one in _whole(read_tree(tree, store, change.blob)):
                found.setdefault(one.signed, one)
    if more is not None:
        for one in _whole(read_folder(more)):
            found.setdefault(one.signed, one)
    return list(found.values())


def _whole(contents: Contents) -> tuple[Stored, ...]:
    """The statements; what was left out for its size would be missed in silence."""
    if contents.unread:
        raise FactUnavailable(contents.unread)
    return contents.statements


def judged_evidence(
    stored: Iterable[Stored], cells: Set[CellId], trust: Trust, day: date
) -> Evidence:
    """What the statements about these cells are worth; the others are left out unverified.

    With them are the audits of the machine code that they launched.
    """
    everything = [*stored]
    about = [one for one in everything if one.statement.cell.id in cells]
    wanted = {*cells, *audits_of(one.statement for one in about)}
    asked = [one for one in everything if one.statement.cell.id in wanted]
    return Evidence(accept(asked, trust, day)) if asked else Evidence()


def _files(tree: Tree, store: str) -> Iterator[tuple[str, str]]:
    """Path and object of every evidence file of a store."""
    for path in tree:
        if path.startswith(f"{store}/") and path.endswith(SUFFIXES):
            side = tree.get(path)
            yield path, side.oid if side else ""
