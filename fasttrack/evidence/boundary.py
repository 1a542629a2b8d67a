# SPDX-License-Identifier: Apache-2.0
"""Which files outside the roots a source imports directly: one of the roots, or one that judges.

Inside the roots a name is matched against the end of a path. In a whole repository that would find
far too much (`torch` is the name of many a file), so a module counts only where Python could find
it: below a folder that is not itself a package. Headers are matched by the end of their path.

What a linked folder or a library without source brings is not seen; what is loaded at run time
without being listed makes a statement incomplete.
"""

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator

from fasttrack.evidence.named import Named, files_named

_INIT = "__init__.py"


class Outside:
    """The files of a tree that are not in the roots, by the names that sources use for them."""

    def __init__(self, tree: Iterable[str], roots: Iterable[str]) -> None:
        """Takes all paths of the tree, and those of the roots among them."""
        paths = frozenset(tree)
        self._paths = paths - frozenset(roots)
        self._packages = {posixpath.dirname(p) for p in paths if posixpath.basename(p) == _INIT}
        self._by_name: dict[str, list[str]] = defaultdict(list)
        for path in sorted(self._paths):
            self._by_name[_last_name(path)].append(path)

    def named_by(self, path: str, named: Named) -> Iterator[tuple[str, str]]:
        """Files that the source at `path` needs, each with how: `imported by`, for instance."""
        return files_named(path, named, self)

    def holds(self, path: str) -> bool:
        """See `Index`."""
        return path in self._paths

    def module(self, parts: tuple[str, ...]) -> Iterator[str]:
        """See `Index`: below a folder that is no package."""
        stem = "/".join(parts)
        for tail in (f"{stem}.py", f"{stem}/{_INIT}"):
            for path in self.ending(tail):
                if path == tail or path.removesuffix(f"/{tail}") not in self._packages:
                    yield path

    def ending(self, tail: str) -> Iterator[str]:
        """See `Index`."""
        for path in self._by_name.get(_last_name(tail), ()):
            if path == tail or path.endswith(f"/{tail}"):
                yield path


def _last_name(path: str) -> str:
    """The last segment of a path; of a package's `__init__.py`, which are many, the last two."""
    segments = path.split("/")
    return "/".join(segments[-2:] if segments[-1] == _INIT else segments[-1:])
