# SPDX-License-Identifier: Apache-2.0
"""Imports that a change brings to a file, and the repository's files that they mean."""

import posixpath
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

from fasttrack.case import Case
from fasttrack.change.imports import Import, imports_of
from fasttrack.change.tree import Entry
from fasttrack.errors import FactUnavailable
from fasttrack.manifest.model import Manifest
from fasttrack.meaning.modules import Modules
from fasttrack.meaning.source import is_python, is_regular, source_of
from fasttrack.rules.confinement.readable import added_text

Meant = tuple[Import, str]
"""An import, and the path of a file that it loads."""


def new_imports(case: Case, entry: Entry, modules: Modules) -> Iterator[Meant]:
    """What an entry's new side imports and its old side does not; one for each file meant.

    A file that can not be read or parsed imports nothing here: FT124 and FT219 tell that.
    """
    with suppress(FactUnavailable):
        found = imports_of(source_of(case, entry.new))
        before = {file for _, file in _meant(case, entry, modules)}
        for one in found:
            for file in _files(one, entry.path, modules):
                if file not in before:
                    yield one, file


def _meant(case: Case, entry: Entry, modules: Modules) -> Iterator[Meant]:
    if is_regular(entry.old):
        with suppress(FactUnavailable):
            for one in imports_of(source_of(case, entry.old)):
                if not one.type_checking:
                    yield from ((one, file) for file in _files(one, entry.path, modules))


def _files(one: Import, path: str, modules: Modules) -> Iterator[str]:
    """The module itself, or those of its submodules that are named."""
    name = modules.absolute(path, one.module, one.level)
    parts = [modules.path_of(f"{name}.{part}") for part in one.names if name]
    yield from (part for part in parts if part)
    home = modules.path_of(name) if name else None
    if home is not None and (not one.names or None in parts):
        yield home


def speaks_of(case: Case, entry: Entry, manifest: Manifest) -> bool:
    """Whether a file may newly import from the roots: cheap, and never wrong with a no."""
    words = _words(manifest.code.roots)
    try:
        if not any(words.search(line.text) for line in added_text(case, entry)):
            return False
        text = source_of(case, entry.new).replace("\\\n", " ")
    except FactUnavailable:
        return True
    return bool(_naming(manifest.code.roots).search(text))


@cache
def _words(roots: tuple[str, ...]) -> re.Pattern[str]:
    """What one of the lines of an import of a root or from it holds."""
    return re.compile(rf"import|\b(?:{_last_parts(roots)})\b")


@cache
def _naming(roots: tuple[str, ...]) -> re.Pattern[str]:
    """What such an import looks like: the root's last part is named, or computed."""
    word = rf"\b(?:{_last_parts(roots)})\b"
    return re.compile(
        rf"^[^\n]*\b(?:import|from)\b[^\n]*{word}|\bimport\s*\([^)]*{word}"
        r"|\b(?:import_module|__import__)\b",
        re.MULTILINE,
    )


def _last_parts(roots: tuple[str, ...]) -> str:
    names = {posixpath.basename(root.rstrip("/")).partition(".")[0] for root in roots}
    return "|".join(sorted(map(re.escape, names)))


def changed_python(entry: Entry) -> bool:
    """Whether the change leaves other Python code at a path."""
    return is_python(entry.path) and is_regular(entry.new) and entry.new.oid != entry.old.oid
