# SPDX-License-Identifier: Apache-2.0
"""Which paths the change goes on developing."""

from collections.abc import Iterator

from fasttrack.case import Case, in_roots
from fasttrack.manifest.model import Manifest


def roots_touched(case: Case) -> Iterator[tuple[str, Manifest, str]]:
    """Path of manifest, manifest, and the first file in its roots that is added or modified.

    The manifest is the one after the merge: it says under which terms the files will live.
    Deleted files do not count, as a path that has ended is taken out by deleting them.
    """
    for path, manifest in case.head.valid.items():
        for entry in case.entries:
            if not entry.deleted and in_roots(manifest, entry.path):
                yield path, manifest, entry.path
                break
