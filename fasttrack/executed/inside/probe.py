# SPDX-License-Identifier: Apache-2.0
"""Imports modules and tells what that changed in everything else; run by its path.

    python -I -S -B probe.py REPORT_FD < JOB

Twice for a tree. First with no `preload`: it imports the modules and tells which others that
loaded, in their order. Then with those as `preload`: they are imported first, without the modules,
so that what the modules do can be told from what was there; modules that can not be imported
without them are named as `late`. The report is JSON; nothing else ends the process.
"""

import os
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from json import dumps, loads  # taken now: whoever is imported later can put others there
from pathlib import Path
from typing import Any

_TOP = str(Path(__file__).resolve().parents[3])
sys.path.insert(0, _TOP)
from fasttrack.executed.inside import process, state  # noqa: E402

CHANGES_LIMIT = 2000
"""Changes that are told."""
EVENTS_LIMIT = 200
_TOLD_EVENTS = {
    "socket.connect": "connects to",
    "socket.bind": "binds",
    "socket.getaddrinfo": "looks up",
    "socket.__new__": "opens a socket of",
    "subprocess.Popen": "starts",
    "os.system": "starts",
    "os.exec": "becomes",
    "os.posix_spawn": "starts",
    "os.fork": "forks",
    "os.forkpty": "forks",
    "os.kill": "signals",
    "os.remove": "removes",
    "os.rename": "renames",
    "os.mkdir": "makes the folder",
    "os.rmdir": "removes the folder",
    "os.link": "links",
    "os.symlink": "links",
    "os.chmod": "changes the mode of",
    "os.truncate": "truncates",
    "shutil.rmtree": "removes",
    "ctypes.dlopen": "loads",
    "gc.get_objects": "asks the collector for all objects",
    "gc.get_referrers": "asks the collector who refers to an object",
    "gc.get_referents": "asks the collector what an object refers to",
}
_HOME, _TREE = os.environ.get("HOME", "~"), str(Path.cwd())
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Watch:
    """What the process tries and what it imports, as the interpreter's audit events tell."""

    def __init__(self) -> None:
        self.imported: dict[str, None] = {}
        self.tried: dict[str, None] = {}
        self.telling = False
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "import":
            self.imported[arguments[0]] = None
        elif self.telling and len(self.tried) < EVENTS_LIMIT:
            if event in _TOLD_EVENTS:
                self.tried[f"{_TOLD_EVENTS[event]} {_shown(arguments)}"] = None
            elif event == "open" and _is_writing(arguments):
                self.tried[f"opens for writing {_shown(arguments[:1])}"] = None


def _is_writing(arguments: tuple[Any, ...]) -> bool:
    path, mode, flags = (*arguments, None, None, None)[:3]
    by_mode = isinstance(mode, str) and any(sign in mode for sign in "wax+")
    return path != os.devnull and (by_mode or bool(isinstance(flags, int) and flags & _WRITES))


def _shown(arguments: tuple[Any, ...]) -> str:
    plain = [argument for argument in arguments if isinstance(argument, str | bytes | int | list)]
    text = " ".join(os.fsdecode(a) if isinstance(a, bytes) else str(a) for a in plain[:2])
    return _without_places(text)[: state.TEXT]


def _without_places(text: str) -> str:
    """A text without the folders that only this run has."""
    return text.replace(_HOME, "~").replace(_TREE + "/", "")


class _Hidden:
    """A finder that knows no governed module."""

    def __init__(self, is_own: "Owned") -> None:
        self._is_own = is_own

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Raises ImportError for a governed name, and has nothing to say of others."""
        if self._is_own(name):
            raise ImportError(f"{name} is not there yet")


class Owned:
    """Tells the names of governed modules."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = frozenset(names)
        self._tops = tuple(f"{name}." for name in names)

    def __call__(self, name: str) -> bool:
        """Whether a module is governed."""
        return name in self._names or name.startswith(self._tops)


def run(job: Mapping[str, Any], watch: Watch) -> dict[str, Any]:
    """Imports what the job says, and reports."""
    sys.path[:0] = job["folders"]
    owned = Owned(job["owned"])
    late = _preload(job["preload"], owned)
    before: state.State | None = None
    if job["measure"]:
        # Some things come to be when they are first asked for: one look for nothing.
        process.process_state(owned)
        foreign = {name: m for name, m in sys.modules.items() if not owned(name)}
        before, was = state.State(foreign, owned), process.process_state(owned)
        modules = dict(sys.modules)
    failed: dict[str, str] = {}
    changes: dict[tuple[str, str], str] = {}
    watch.telling = True
    for name in job["modules"]:
        try:
            import_module(name)
        except BaseException as error:  # whatever it raises, the others are imported
            failed[name] = f"{type(error).__name__}: {error}"[: state.TEXT]
        if before is not None and (name in job["watched"] or name == job["modules"][-1]):
            watch.telling = False
            for what, how in _changes(before, was, modules, owned):
                if len(changes) < CHANGES_LIMIT:
                    changes.setdefault((_without_places(what), _without_places(how)), name)
            for tried in watch.tried:
                changes.setdefault(("code at import", tried), name)
            watch.telling = True
    watch.telling = False
    return {
        "loaded": [n for n in {**watch.imported, **sys.modules} if not owned(n)],
        "late": late,
        "failed": failed,
        "changes": [[what, how, name] for (what, how), name in changes.items()],
        "whole": before is None or before.whole,
        "states": _states(late) if job["measure"] else {},
    }


def _preload(names: Sequence[str], owned: Owned) -> list[str]:
    """Imports others; those that can not be had without the governed modules are returned."""
    hidden = _Hidden(owned)
    sys.meta_path.insert(0, hidden)
    missing = []
    for name in names:
        if name not in sys.modules and name != "__main__":
            try:
                import_module(name)
            except BaseException:  # tried again by whoever needs it
                missing.append(name)
    sys.meta_path.remove(hidden)
    return missing


def _changes(
    before: state.State,
    was: Mapping[str, str],
    modules: Mapping[str, types.ModuleType],
    owned: Owned,
) -> Iterator[tuple[str, str]]:
    yield from before.changes()
    yield from _of_process(was, process.process_state(owned))
    for name, module in modules.items():
        if not owned(name) and sys.modules.get(name) is not module:
            yield f"sys.modules[{name!r}]", f"is {state.described(sys.modules.get(name))}"
    for name, module in dict(sys.modules).items():
        if name in modules or owned(name):
            continue
        if not _is_found(module):
            yield f"sys.modules[{name!r}]", f"is new: {state.described(module)}"
        elif name.partition(".")[0] not in sys.stdlib_module_names:
            # Nobody has looked at it before: the first run was shown another face.
            yield f"sys.modules[{name!r}]", "is imported only while others are watched"


def _of_process(was: Mapping[str, str], now: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    spaces = {name.partition("::")[0] for name in was if name.startswith("the operator ")}
    for name in {**was, **now}:
        if was.get(name) == now.get(name):
            continue
        if name.startswith("the operator "):
            # One's own operators are in a namespace that nobody else has.
            if name.partition("::")[0] in spaces:
                yield name, "is registered otherwise" if name in was else "is new"
        elif name in was or not name.startswith("classes registered"):
            yield name, f"is {now[name]}"[: state.TEXT] if name in now else "is gone"


def _is_found(module: object) -> bool:
    """Whether a module came by the import system, and not by hand."""
    return isinstance(module, types.ModuleType) and getattr(module, "__spec__", None) is not None


def _states(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """What late modules hold, by name: compared between trees, as nothing was there before."""
    return {
        name: {key: state.described(value) for key, value in state.members(module).items()}
        for name in names
        if (module := sys.modules.get(name)) is not None
    }


def main() -> None:
    """Reads the job, does it, and leaves without a goodbye."""
    for name in [n for n in sys.modules if n == "fasttrack" or n.startswith("fasttrack.")]:
        del sys.modules[name]  # the tree may hold a package of this name
    sys.path.remove(_TOP)
    report = int(sys.argv[1])
    job = loads(sys.stdin.read())
    sys.path += job["packages"]
    sys.argv = [""]
    found = run(job, Watch())
    with os.fdopen(report, "wb") as pipe:
        pipe.write(dumps({**found, "nonce": job["nonce"]}).encode("ascii", "replace"))
    os._exit(0)


if __name__ == "__main__":
    main()
