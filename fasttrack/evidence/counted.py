# SPDX-License-Identifier: Apache-2.0
"""Which files that no digest holds count as surroundings of a run, by their names.

Left out is prose, which people edit after a run; of the roots all but compiled modules, which stand
in for sources, as another unit's digest may hold the rest; and configuration, as it decides nothing
by itself, and a tier or a key may be edited, unless it is gone. Links count always.
"""

from collections.abc import Sequence

from fasttrack.case import lies_in
from fasttrack.change.tree import Entry
from fasttrack.evidence.store import FOLDER

PROSE = (".md", ".rst")
"""Ends of files that are for people."""
COMPILED = (".pyc", ".pyd", ".so")
"""Ends of files that Python imports in place of a source."""


class Counted:
    """The surroundings of runs under one manifest."""

    def __init__(self, roots: Sequence[str], unbound: Sequence[str]) -> None:
        """Takes the names.

        Args:
            roots: the manifest's.
            unbound: files and folders (ending in `/`) that may be read although no digest has
                them; evidence lies in one of them.
        """
        self._roots, self._unbound = tuple(roots), tuple(unbound)

    def counts(self, entry: Entry) -> bool:
        """Whether a difference could matter although nobody was seen to use the file."""
        path = entry.path
        if entry.is_symlink or entry.is_gitlink:
            return True
        if lies_in(self._unbound, path):
            return entry.deleted and f"/{FOLDER}/" not in path
        if lies_in(self._roots, path):
            return path.endswith(COMPILED)
        return not path.endswith(PROSE)
