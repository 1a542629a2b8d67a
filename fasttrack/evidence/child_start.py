# SPDX-License-Identifier: Apache-2.0
"""The first thing that a measuring child runs, so that it sees everything which is loaded later.

    python -P -S child_start.py TREE SEARCH_PATH [OWN ...] -- ARGUMENTS OF PYTEST ...

Python, pytest and its plugins are loaded while the tree is on no search path: none of its files can
take the place of theirs. Then the tree comes last. Only packages with files that the evidence binds
to are looked for there first, as an installed one may be another checkout.

It is run by its path and without `site`, which could load a `sitecustomize.py` of the tree; `site`
follows once whatever is opened is noted. A process that a test starts by `multiprocessing` runs
this file too, as its `__mp_main__`, and gets the same order.
"""

import importlib.util
import os
import site
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType


class OwnFirst:
    """Finds a tree's own packages in the tree, and nothing else."""

    def __init__(self, tree: Path, own: Sequence[str]) -> None:
        """Takes what its own are.

        Args:
            tree: the source tree.
            own: folders and files of it, relative, that are packages and modules of its own.
        """
        self._tree = tree
        self._own = frozenset(own)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, _: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`; only a top-level name can be one of its own."""
        places = [place for place in sys.path if self._has(place, name)] if path is None else []
        return PathFinder.find_spec(name, places) if places else None

    def _has(self, place: str, name: str) -> bool:
        if not lies_in(self._tree, place):
            return False
        path = (Path(place).resolve() / name).relative_to(self._tree).as_posix()
        return path in self._own or f"{path}.py" in self._own


class TreeLast:
    """A plugin of pytest: the tree comes onto the search path once all plugins are there."""

    def __init__(self, places: Sequence[str], finder: OwnFirst) -> None:
        """Takes the places of the search path that are the tree's, and who finds its own."""
        self._places = places
        self._finder = finder

    def pytest_load_initial_conftests(self) -> None:
        """Puts the tree at the end."""
        sys.path += self._places
        sys.meta_path.insert(0, self._finder)


def lies_in(tree: Path, place: str) -> bool:
    """Whether a place is in a resolved tree, but in no Python environment that lies there."""
    path = Path(place).resolve()
    inside = [Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix)]
    foreign = any(path.is_relative_to(found) for found in inside if tree in found.parents)
    return path.is_relative_to(tree) and not foreign


def _packaged() -> None:
    """Makes `fasttrack` the package in which this file lies, whatever search path there will be."""
    folder = Path(__file__).parent.parent
    spec = importlib.util.spec_from_file_location(
        "fasttrack", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = sys.modules["fasttrack"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)


def _searched(tree: Path, search_path: str) -> list[str]:
    """Sets the search path up, without the tree; what of it was there, and the tree itself."""
    named = [os.path.realpath(place) for place in search_path.split(os.pathsep) if search_path]
    sys.path[:0] = [place for place in named if not lies_in(tree, place)]
    site.main()
    places = [*named, *sys.path, str(tree)]
    mine = list(dict.fromkeys(place for place in places if lies_in(tree, place)))
    sys.path[:] = [place for place in sys.path if place not in mine]
    return mine


def _main(arguments: Sequence[str]) -> int:
    tree, search_path, own, command = _split(arguments)
    _packaged()
    from fasttrack.evidence.observed import watch  # noqa: PLC0415

    watch()
    if search_path:
        os.environ["PYTHONPATH"] = search_path  # for what tests start
    places = _searched(tree, search_path)
    import pytest  # noqa: PLC0415

    return int(pytest.main([*command], plugins=[TreeLast(places, OwnFirst(tree, own))]))


def _split(arguments: Sequence[str]) -> tuple[Path, str, Sequence[str], Sequence[str]]:
    end = arguments.index("--")
    tree, search_path, *own = arguments[:end]
    return Path(tree).resolve(), search_path, own, arguments[end + 1 :]


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
if __name__ == "__mp_main__":
    _split_up = _split(sys.argv[1:])
    sys.meta_path.insert(0, OwnFirst(_split_up[0], _split_up[2]))
