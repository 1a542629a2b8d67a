# SPDX-License-Identifier: Apache-2.0
"""FT104: no symbolic link is added or changed, and no file becomes one or stops being one."""

import posixpath
from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.finding import Finding, Level
from fasttrack.policy.model import PathClass
from fasttrack.rules.base import EntryRule

TARGET_LIMIT = 4096
"""Bytes of a link's target: PATH_MAX of Linux; no system follows a longer one."""


class Symlink(EntryRule):
    """Symbolic links that the change brings."""

    id = "FT104"
    slug = "symlink"
    title = "no symbolic link is added or changed"
    level = Level.ROUTE
    refuses = (
        "A symbolic link that is added, retargeted, put in a file's place or replaced by a file. "
        "The finding names where it points: out of the repository, or to which class of path. "
        "A link that is only deleted passes."
    )
    why = (
        "A link inside the roots lets edits and reads land outside them, and digests of a unit "
        "would not notice when its target changes."
    )
    blind = "Links that existed before, and chains through them."
    fix = "put a regular file there"

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Reports one link, or one path that stops being one."""
        if entry.new.is_symlink:
            raw = case.change.blob(entry.new, TARGET_LIMIT)
            target = raw.decode("utf-8", "surrogateescape")
            saw = f"a symbolic link to `{target}`, {_destination(case, entry.path, target)}"
        elif entry.old.is_symlink and entry.new.present:
            saw = "a symbolic link replaced by something else"
        else:
            return
        yield self.finding(path=entry.path, saw=saw, want="regular files", content=entry.new.oid)


def _destination(case: Case, path: str, target: str) -> str:
    """Where a link leads, in words."""
    resolved = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    outside = resolved == ".." or resolved.startswith(("../", "/"))
    if outside or "\\" in target or target[1:2] == ":":
        return "which is outside the repository"
    found = case.path_class(resolved)
    if found is PathClass.SHARED:  # the target may be a folder; patterns name what is below it
        found = case.path_class(f"{resolved}/file")
    return f"which is a `{found.value}` path"
