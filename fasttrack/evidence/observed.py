# SPDX-License-Identifier: Apache-2.0
"""What a measuring process really used: repository files, interpreter, packages.

The collector compares the files with the plan's: evidence that depends on a file which no digest
holds would outlive a change of it. This finds what was forgotten, not what is hidden: a file that
another process or a library's own code opens is not seen.
"""

import os
import platform
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import distributions
from pathlib import Path

_OPENED: set[str] = set()
_NAMED_AT = {"open": 0, "import": 1, "ctypes.dlopen": 0}
"""Events that name a file which is read, to the place of the name among their arguments."""


def watch() -> None:
    """Notes every file that is read from now on, for the rest of the process."""
    sys.addaudithook(_note)


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event not in _NAMED_AT or (event == "open" and not _reads(arguments[1], arguments[2])):
        return
    name = arguments[_NAMED_AT[event]]
    if isinstance(name, str | bytes | os.PathLike):
        try:
            # Joined now: the process may move, and files may go.
            path = os.path.join(os.getcwd(), os.fsdecode(name))  # noqa: PTH109, PTH118
        except OSError:
            return  # in a folder that is gone
        if os.path.isfile(path):  # noqa: PTH113  (the hook runs for every file: no objects)
            _OPENED.add(_source(path))


def _source(path: str) -> str:
    """What a compiled file was compiled from, where another child compiled it; else the file."""
    prefix = sys.pycache_prefix
    if prefix is None or not (path.startswith(prefix) and path.endswith(".pyc")):
        return path
    folder, _, name = path.removeprefix(prefix).rpartition("/")
    return f"{folder}/{name.partition('.')[0]}.py"


def _reads(mode: object, flags: object) -> bool:
    """Whether what was there can be read: `open` tells a mode, `os.open` only flags."""
    if isinstance(mode, str):
        return "+" in mode or not set(mode) & set("wax")
    return not isinstance(flags, int) or flags & os.O_ACCMODE != os.O_WRONLY


def opened_files(root: Path) -> list[str]:
    """Repository paths of what was opened since `watch`, sorted; of data, not of modules alone."""
    return _inside(root, _OPENED)


def imported_files(root: Path) -> list[str]:
    """Repository paths of the modules in this process, sorted."""
    return _inside(root, (file for _, file in _modules()))


def replaced_files(root: Path) -> list[str]:
    """Repository paths of modules in whose place other bytes were imported from elsewhere."""
    places = [Path(place) for place in sys.path if root.resolve() in _with_parents(place)]
    found = []
    for name, file in _modules():
        stem = name.replace(".", "/")
        for place in places:
            for mine in (place / f"{stem}.py", place / stem / "__init__.py"):
                if mine.is_file() and not _same(mine, Path(file)):
                    found.append(str(mine))
    return _inside(root, found)


def _modules() -> Iterator[tuple[str, str]]:
    """Every module of this process with a file, by the name that imports find it by."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and Path(file).is_file():
            yield name, file


def _with_parents(place: str) -> tuple[Path, ...]:
    path = Path(place).resolve()
    return (path, *path.parents)


def _same(one: Path, other: Path) -> bool:
    return one.samefile(other) or one.read_bytes() == other.read_bytes()


def _inside(root: Path, files: Iterable[str]) -> list[str]:
    """Those under `root`, as named and as links lead, but none of an environment in it."""
    root = root.resolve()
    prefixes = {Path(place) for place in (sys.prefix, sys.base_prefix)}
    prefixes |= {place.resolve() for place in prefixes}
    foreign = [place for place in prefixes if root in place.parents]
    found = set()
    for name in list(files):
        for path in (Path(os.path.normpath(name)), Path(os.path.realpath(name))):
            if root in path.parents and not any(place in path.parents for place in foreign):
                found.add(path.relative_to(root))
    return sorted(path.as_posix() for path in found if path.parts[0] != ".git")


def python() -> str:
    """Version of the interpreter."""
    return platform.python_version()


def installed() -> dict[str, str]:
    """Installed package to version."""
    found = ((d.metadata["Name"], d.version) for d in distributions())
    return {name.lower(): version for name, version in found if name and version}
