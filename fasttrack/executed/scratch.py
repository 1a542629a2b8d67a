# SPDX-License-Identifier: Apache-2.0
"""Writes trees of a change to scratch folders, from git objects and never from a checkout."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from fasttrack.change.change import Change
from fasttrack.change.tree import Side, Tree
from fasttrack.errors import FactUnavailable

FILES_LIMIT = 100_000
"""Files of a tree that is written."""
TREE_LIMIT = 2 << 30
"""Bytes of a tree that is written."""
FILE_LIMIT = 64 << 20
"""Bytes of a file; a larger one holds no code, and is left out."""


@contextmanager
def scratch_tree(change: Change, tree: Tree, other: Mapping[str, Side | None]) -> Iterator[Path]:
    """A folder that holds a tree while the block runs.

    Args:
        change: where the objects are read from.
        tree: what to write.
        other: path to what is to be there instead of the tree's own; None for nothing.

    Raises:
        FactUnavailable: it is too large, an object is not in this clone, or a path can not be
            written as it is.
    """
    sides = {**{path: tree.get(path) for path in tree}, **other}
    files = {path: side for path, side in sides.items() if side and not side.is_gitlink}
    if len(files) > FILES_LIMIT:
        raise FactUnavailable(f"a tree of {len(files):,} files; at most {FILES_LIMIT:,} are run")
    with tempfile.TemporaryDirectory(prefix="fasttrack-tree-", ignore_cleanup_errors=True) as top:
        _write(change, files, Path(top))
        yield Path(top)


def _write(change: Change, files: Mapping[str, Side], top: Path) -> None:
    """Files before links: so no file is written through a link."""
    wanted = {p: side for p, side in files.items() if change.size(side) <= FILE_LIMIT}
    if sum(map(change.size, wanted.values())) > TREE_LIMIT:
        raise FactUnavailable(f"a tree of more than {TREE_LIMIT >> 30} GB")
    ordered = sorted(wanted.items(), key=lambda item: (item[1].is_symlink, item[0]))
    contents = change.blobs([side for _, side in ordered], FILE_LIMIT)
    for (path, side), content in zip(ordered, contents, strict=True):
        file = _place(top, path)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            if side.is_symlink:
                file.symlink_to(content.decode("utf-8", "surrogateescape"))
                continue
            with file.open("xb") as new:
                new.write(content)
        except (OSError, ValueError) as error:
            raise FactUnavailable(f"`{path}` can not be written: {error}") from error
        if side.mode == "100755":
            file.chmod(0o755)


def _place(top: Path, path: str) -> Path:
    parts = path.split("/")
    if any(part.casefold() in {"", ".", "..", ".git"} for part in parts):
        raise FactUnavailable(f"`{path}` is no path that is written to disk")
    return top.joinpath(*parts)


def as_seen(text: str, *tops: Path) -> str:
    """A text without the names of scratch folders, which differ between runs."""
    for top in tops:
        with suppress(ValueError):
            text = text.replace(str(top) + "/", "").replace(str(top), ".")
    return text
