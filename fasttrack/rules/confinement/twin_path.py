# SPDX-License-Identifier: Apache-2.0
"""FT111: no new path equals another one up to case and Unicode normal form."""

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from fasttrack.case import Case
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import Rule
from fasttrack.rules.confinement.resulting_tree import resulting_tree


class TwinPath(Rule):
    """New paths that share a file with another path on systems that fold names."""

    id = "FT111"
    slug = "twin-path"
    title = "no new path is another path in a different spelling"
    level = Level.BLOCK
    refuses = (
        "A new file, or a new folder on the way to it, whose name differs from one that will be "
        "there after the change only by case or Unicode normal form. A twin that the change "
        "deletes does not count, nor do folders that the target branch already spells both ways."
    )
    why = (
        "On macOS and Windows both are one file: a checkout silently replaces one by the other, "
        "and which one wins is not in the change."
    )
    blind = (
        "Names that look alike but fold apart, such as Latin and Cyrillic `a`; FT110 shows those."
    )
    fix = "give the new path a name of its own"
    waivable = False

    def check(self, case: Case) -> Iterator[Finding]:
        """Compares the new paths and their folders with the tree after the change."""
        added = [e.path for e in case.change.entries if e.added]
        if not added:
            return
        keys = {_key(prefix) for path in added for prefix in _prefixes(path)}
        spellings = _spellings(resulting_tree(case), keys)
        known = _spellings(case.change.base, keys)
        for path in added:
            for prefix in _prefixes(path):
                twins = sorted(spellings[_key(prefix)] - {prefix})
                if twins and prefix not in known[_key(prefix)]:
                    yield self.finding(
                        path=path,
                        saw=f"`{prefix}` beside `{twins[0]}`",
                        want="one spelling of each path",
                    )
                    break


def _prefixes(path: str) -> Iterator[str]:
    """The folders on the way to a path, outermost first, and the path itself."""
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)
    yield path


def _spellings(paths: Iterable[str], keys: set[str]) -> Mapping[str, set[str]]:
    """All files and folders whose key is one of `keys`, by key."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    seen: set[str] = set()
    for path in paths:
        prefix = path
        while prefix and prefix not in seen:
            seen.add(prefix)
            if (key := _key(prefix)) in keys:
                found[key].add(prefix)
            prefix = prefix.rpartition("/")[0]
    return found


def _key(path: str) -> str:
    """What file systems compare that fold case and normal form, character by character.

    Narrower than `fold`, which also joins what stays apart on disk, such as `fi` and its
    ligature, or `ss` and the sharp s: this rule blocks, so it must not err.
    """
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFD", "".join(map(_folded, unicodedata.normalize("NFD", path))))


def _folded(character: str) -> str:
    folded = character.casefold()
    return folded if len(folded) == 1 else character
