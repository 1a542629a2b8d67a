# SPDX-License-Identifier: Apache-2.0
"""What a measuring process really used: repository files, interpreter, packages.

The collector compares the files with the plan's: evidence that depends on a file which no digest
holds would outlive a change of it. This finds what was forgotten, not what is hidden: a file that
another process or a library's own code opens is not seen.
"""

import os
import platform
import sys
from collections.abc import Iterable
from importlib.metadata import distributions
from pathlib import Path

_NEVER_TRACKED = frozenset({".git", "__pycache__"})
_OPENED: set[str] = set()


def watch() -> None:
    """Notes every file that is opened for reading from now on, for the rest of the process."""
    sys.addaudithook(_note)


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event != "open" or not _reads(arguments[1], arguments[2]):
        return
    name = arguments[0]
    if isinstance(name, str | bytes | os.PathLike):
        try:
            # Joined now: the process may move, and files may go.
            path = os.path.join(os.getcwd(), os.fsdecode(name))  # noqa: PTH109, PTH118
        except OSError:
            return  # in a folder that is gone
        if os.path.isfile(path):  # noqa: PTH113  (the hook runs for every file: no objects)
            _OPENED.add(path)


def _reads(mode: object, flags: object) -> bool:
    """Whether what was there can be read: `open` tells a mode, `os.open` only flags."""
    if isinstance(mode, str):
        return "+" in mode or not set(mode) & set("wax")
    return not isinstance(flags, int) or flags & os.O_ACCMODE != os.O_WRONLY


def opened_files(root: Path) -> list[str]:
    """Repository paths of what was opened since `watch`, sorted."""
    return _inside(root, _OPENED)


def imported_files(root: Path) -> list[str]:
    """Repository paths of the modules in this process, sorted."""
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return _inside(root, (f for f in files if isinstance(f, str) and Path(f).is_file()))


def _inside(root: Path, files: Iterable[str]) -> list[str]:
    """Those under `root`, as named and as links lead, but none of an environment in it."""
    root = root.resolve()
    environments = {Path(place).resolve() for place in (sys.prefix, sys.base_prefix)}
    foreign = [place for place in environments if root in place.parents]
    found = set()
    for name in list(files):
        for path in (Path(os.path.normpath(name)), Path(os.path.realpath(name))):
            if root in path.parents and not any(place in path.parents for place in foreign):
                found.add(path.relative_to(root))
    return sorted(path.as_posix() for path in found if not _NEVER_TRACKED & {*path.parts})


def python() -> str:
    """Version of the interpreter."""
    return platform.python_version()


def installed() -> dict[str, str]:
    """Installed package to version."""
    found = ((d.metadata["Name"], d.version) for d in distributions())
    return {name.lower(): version for name, version in found if name and version}
