# SPDX-License-Identifier: Apache-2.0
"""What statements say of one file of a tree beside the digests: its SHA-256, or that it is not."""

import hashlib

from fasttrack.change.change import Change
from fasttrack.change.tree import Side
from fasttrack.evidence.inputs import INPUT_LIMIT


class SideDigests:
    """Digests of what git stores at paths; each object is read once."""

    def __init__(self, change: Change) -> None:
        """Reads nothing yet."""
        self._change = change
        self._sha256: dict[str, str] = {}

    def of(self, side: Side) -> str | None:
        """Of a regular file's bytes; None for no file.

        A link or a submodule has no bytes of its own, and is something else than both: its digest
        is that of its mode, a blank and its object id.

        Raises:
            FactUnavailable: the bytes are too many, or not in this clone.
        """
        if not side.present:
            return None
        if side.is_symlink or side.is_gitlink:
            return hashlib.sha256(f"{side.mode} {side.oid}".encode("ascii")).hexdigest()
        if side.oid not in self._sha256:
            content = self._change.blob(side, INPUT_LIMIT)
            self._sha256[side.oid] = hashlib.sha256(content).hexdigest()
        return self._sha256[side.oid]
