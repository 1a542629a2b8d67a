# SPDX-License-Identifier: Apache-2.0
"""What a source file names: modules, headers, and words in quotes. Who bears a name is told apart.

Python: imports at module level and inside functions, not those under `TYPE_CHECKING`. C, C++ and
CUDA: `#include`. Of a source in another language nobody can tell what it loads.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from fasttrack.change.imports import Import, imports_of
from fasttrack.errors import FactUnavailable

_CONTINUED = re.compile(r"\\[ \t]*\r?\n")
_BLANK = r"(?:[ \t\f\v]|/\*(?:[^*\n]|\*(?!/))*\*/)*"
_DIRECTIVE = re.compile(
    rf"^(?:[^\n]*\*/)?[ \t\f\v]*(?:#|%:|\?\?=){_BLANK}"
    rf"(?:(?:include|include_next|import|embed)\b{_BLANK}|(?=/\*))(.*)",
    re.MULTILINE,
)
"""What is included, in whatever form; the rest of the line where a comment hides which directive
it is."""
_INCLUDED = re.compile(r'["<]([^">]{1,512})[">]')
_QUOTED = re.compile(r"""["'](\.*[\w-]+(?:[./][\w-]+)*)["']""")
_PYTHON_SUFFIXES = frozenset({".py", ".pyi", ".pyw"})
_C_SUFFIXES = frozenset(
    f".{name}" for name in (
        "c", "cc", "cl", "cpp", "cu", "cuh", "cxx", "h", "hh", "hip", "hpp", "hxx",
        "inc", "inl", "ipp", "metal", "s", "tpp",
    )
)  # fmt: skip
_UNREAD_SUFFIXES = frozenset({".pxd", ".pxi", ".pyd", ".pyx", ".rs", ".so"})
"""Sources and libraries that load others in ways that are not read here."""


@dataclass(frozen=True)
class Named:
    """The names in one file.

    Attributes:
        imports: Python imports that run.
        quoted: words in quotes that may be paths or dotted names.
        included: headers as written.
    """

    imports: tuple[Import, ...] = ()
    quoted: frozenset[str] = frozenset()
    included: tuple[str, ...] = ()


def names_in(path: str, text_of: Callable[[str], str]) -> Named:
    """What the file at `path` names; nothing for a file that is no source.

    Args:
        path: decides the language.
        text_of: UTF-8 text of a path; asked only for a source.

    Raises:
        FactUnavailable: nobody can tell, or `text_of` can not.
    """
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in _PYTHON_SUFFIXES:
        text = text_of(path)
        found = tuple(i for i in imports_of(text.removeprefix("\ufeff")) if not i.type_checking)
        return Named(imports=found, quoted=frozenset(_QUOTED.findall(text)))
    if suffix in _C_SUFFIXES:
        return Named(included=_includes(text_of(path)))
    if suffix in _UNREAD_SUFFIXES:
        raise FactUnavailable(f"what a {suffix} file loads is not read")
    return Named()


def modules_of(path: str, found: Import) -> Iterator[tuple[str, ...]]:
    """The modules that an import in the file at `path` may load, outer packages first.

    Those of a relative import start at the repository's top.
    """
    module = tuple(found.module.split(".")) if found.module else ()
    if found.level:
        parent = PurePosixPath(path).parent.parts
        kept = len(parent) - (found.level - 1)
        module = (*parent[: max(kept, 0)], *module)
    for end in range(1, len(module) + 1):
        yield module[:end]
    for name in found.names:
        if name != "*":
            yield (*module, *name.split("."))


def packages_of(path: str) -> Iterator[str]:
    """The `__init__.py` files that Python runs before the module at `path`, were they there."""
    if path.endswith(".py"):
        for folder in folders_above(path):
            if (init := f"{folder}__init__.py") != path:
                yield init


def folders_above(path: str) -> Iterator[str]:
    """The folders above a path, inner ones first, with a `/` at the end; the top is empty."""
    folder = path.rpartition("/")[0]
    while folder:
        yield f"{folder}/"
        folder = folder.rpartition("/")[0]
    yield ""


def is_read(path: str) -> bool:
    """Whether `names_in` asks for the text of the file at a path."""
    return PurePosixPath(path).suffix.lower() in _PYTHON_SUFFIXES | _C_SUFFIXES


class Index(Protocol):
    """Where names are looked up; what bears a module's name differs from set to set."""

    def holds(self, path: str) -> bool:
        """Whether there is a file of exactly this path."""

    def module(self, parts: tuple[str, ...]) -> Iterator[str]:
        """Files that a module may be."""

    def ending(self, tail: str) -> Iterable[str]:
        """Files whose paths end so, in whole segments."""


def files_named(path: str, named: Named, index: Index) -> Iterator[tuple[str, str]]:
    """Files that the source at `path` needs by its names, each with how: `imported by`, ...

    Words in quotes are left out: what they may name is for the caller to say.
    """
    for found in named.imports:
        for parts in modules_of(path, found):
            yield from ((other, "imported by") for other in index.module(parts))
    for name in named.included:
        yield from ((other, "included by") for other in _headers(path, name, index))
    for init in packages_of(path):
        if index.holds(init):
            yield init, "package of"


def _headers(path: str, name: str, index: Index) -> Iterator[str]:
    near = plain(f"{PurePosixPath(path).parent}/{name}")
    if index.holds(near):
        yield near
    yield from index.ending(plain(name))


def plain(path: str) -> str:
    """A relative path without `.` and `..`; those at its start are left out."""
    found = posixpath.normpath(path)
    while found.startswith("../"):
        found = found.removeprefix("../")
    return found


def _includes(text: str) -> tuple[str, ...]:
    named = _DIRECTIVE.findall(_CONTINUED.sub("", text))
    targets = [match[1] for match in map(_INCLUDED.match, named) if match]
    if len(targets) < len(named):
        raise FactUnavailable("it includes what a macro names")
    return tuple(targets)
