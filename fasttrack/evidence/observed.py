# SPDX-License-Identifier: Apache-2.0
"""What a measuring process really used: repository files, interpreter, packages.

The collector compares the files with the plan's: evidence that depends on a file which no digest
holds would outlive a change of it.
"""

import platform
import sys
from importlib.metadata import distributions
from pathlib import Path

_OPENED: set[str] = set()


def watch() -> None:
    """Notes every file that is opened for reading from now on, for the rest of the process."""
    sys.addaudithook(_note)


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str):
        mode = arguments[1]
        if not (isinstance(mode, str) and set(mode) & set("wax")):
            _OPENED.add(arguments[0])


def opened_files(root: Path) -> list[str]:
    """Repository paths of what was opened since `watch`, sorted."""
    return _inside(root, _OPENED)


def imported_files(root: Path) -> list[str]:
    """Repository paths of the modules in this process, sorted."""
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return _inside(root, {file for file in files if isinstance(file, str)})


def _inside(root: Path, files: set[str]) -> list[str]:
    """Regular files under `root`, but neither hidden ones nor those of an environment in it."""
    root = root.resolve()
    elsewhere = {Path(p).resolve() for p in (sys.prefix, sys.base_prefix)}
    found = set()
    for name in files:
        path = Path(name).absolute()
        try:
            relative = path.resolve().relative_to(root)
        except (ValueError, OSError):
            continue
        hidden = any(part.startswith(".") or part == "__pycache__" for part in relative.parts)
        foreign = any(place != root and place in path.parents for place in elsewhere)
        if not hidden and not foreign and path.is_file():
            found.add(relative.as_posix())
    return sorted(found)


def python() -> str:
    """Version of the interpreter."""
    return platform.python_version()


def installed() -> dict[str, str]:
    """Installed package to version."""
    found = ((d.metadata["Name"], d.version) for d in distributions())
    return {name.lower(): version for name, version in found if name and version}
