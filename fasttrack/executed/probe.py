# SPDX-License-Identifier: Apache-2.0
"""Imports the governed code of base and judged tree, and compares what that did to all others."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fasttrack.case import Case, in_roots
from fasttrack.change.tree import Tree
from fasttrack.config import judged_or_head
from fasttrack.executed.reports import ProbeReport, new_nonce, read
from fasttrack.executed.sandbox import package_folders, run_boxed
from fasttrack.executed.scratch import as_seen, scratch_tree
from fasttrack.manifest.model import Manifest
from fasttrack.meaning.modules import Modules, modules_of
from fasttrack.ran import Difference, Probe, Unknown

WATCHED = 16
"""Looks at the process between the imports of changed modules; one takes a second where PyTorch is
loaded. With more modules several share a look, and what they do is told of the last of them."""
_SCRIPT = Path(__file__).parent / "inside" / "probe.py"
_NO_MODULES = frozenset(["__main__", "conftest", "setup"])
"""Names of files that are run, or imported by others than the served program."""


@dataclass(frozen=True)
class Target:
    """The governed modules of one tree.

    Attributes:
        paths: dotted name to repository path.
        folders: where they are imported from; empty or ending in `/`.
    """

    paths: Mapping[str, str]
    folders: tuple[str, ...]


def import_probe(case: Case, timeout_s: float, tell: Callable[[str], None]) -> Probe:
    """The probe of every manifest whose roots the change touches.

    Args:
        case: the change.
        timeout_s: seconds that one import may take.
        tell: is told what begins.

    Raises:
        FactUnavailable: a tree can not be written to disk.
        InputError: something that was started can not be killed.
    """
    touched = [
        manifest
        for manifest in case.head.valid.values()
        if any(in_roots(manifest, entry.path) for entry in case.entries)
    ]
    parts = [_probe(case, manifest, timeout_s, tell) for manifest in touched]
    return Probe(
        tuple(d for part in parts for d in part.differences),
        tuple(u for part in parts for u in part.unknown),
        sum(part.modules for part in parts),
    )


def _probe(case: Case, manifest: Manifest, timeout_s: float, tell: Callable[[str], None]) -> Probe:
    trees = (case.change.base, judged_or_head(case.change))
    before, after = (target(case, manifest, tree) for tree in trees)
    owned = sorted({*before.paths, *after.paths})
    tell(f"import probe of {manifest.name}: base")
    was = _report(case, trees[0], before, owned, timeout_s)
    tell(f"import probe of {manifest.name}: head")
    now = _report(case, trees[1], after, owned, timeout_s)
    root = manifest.code.roots[0]
    if isinstance(now, str):
        return Probe(unknown=(Unknown(root, f"after the change: {now}"),))
    old = None if isinstance(was, str) else was
    unknown = [*_not_imported(case, after.paths, old, now)]
    if isinstance(was, str):
        unknown.append(Unknown(root, f"at the target's tip: {was}"))
    if not now.whole:
        unknown.append(Unknown(root, "more was imported than can be compared"))
    differences = [*_differences(after, old, now, root)]
    differences += _late(case, modules_of(case, manifest), old, now, root)
    return Probe(tuple(differences), tuple(unknown), len(after.paths))


def _differences(
    found: Target, before: ProbeReport | None, after: ProbeReport, root: str
) -> Iterator[Difference]:
    """What the import changes now and did not change before."""
    old = {(what, how) for what, how, _ in before.changes} if before else set()
    for what, how, name in after.changes:
        if (what, how) not in old:
            yield Difference(found.paths.get(name, root), what, how)


def target(case: Case, manifest: Manifest, tree: Tree) -> Target:
    """The modules of a manifest's roots in a tree."""
    modules = modules_of(case, manifest, tree)
    paths: dict[str, str] = {}
    folders = {"": None}
    for path in tree:
        if not path.endswith(".py") or not in_roots(manifest, path):
            continue
        name = modules.name_of(path)
        if name and all(map(str.isidentifier, name.split("."))) and not _is_no_module(name):
            paths[name] = path
            folders[_folder(path, name)] = None
    return Target(paths, tuple(folders))


def _is_no_module(name: str) -> bool:
    last = name.rpartition(".")[2]
    return last in _NO_MODULES or last.startswith("test_")


def _folder(path: str, name: str) -> str:
    stem = path.removesuffix(".py").removesuffix("/__init__")
    return stem.removesuffix(name.replace(".", "/"))


def _changed_first(case: Case, found: Target) -> Mapping[str, bool]:
    """Module to whether the change touches it; those first."""
    changed = {n: case.change.entry(path) is not None for n, path in sorted(found.paths.items())}
    return dict(sorted(changed.items(), key=lambda item: not item[1]))


def _watched(changed: Sequence[str]) -> Sequence[str]:
    """The modules after which to look: each, or the last of each group, and the last of all."""
    step = -(-len(changed) // WATCHED) or 1
    return [
        name for place, name in enumerate(changed, 1) if not place % step or place == len(changed)
    ]


def _report(
    case: Case, tree: Tree, found: Target, owned: Sequence[str], timeout_s: float
) -> ProbeReport | str:
    ordered = _changed_first(case, found)
    if not ordered:
        return ProbeReport(
            nonce="", loaded=(), late=(), failed={}, changes=(), whole=True, states={}
        )
    with scratch_tree(case.change, tree, {}) as top:
        job = {
            "nonce": new_nonce(),
            "folders": [str(top / folder) for folder in found.folders],
            "packages": package_folders(),
            "owned": owned,
            "modules": list(ordered),
            "watched": _watched([name for name, changed in ordered.items() if changed]),
            "preload": [],
            "measure": False,
        }
        first = _run(job, top, timeout_s)
        if isinstance(first, str):
            return first
        return _run({**job, "preload": first.loaded, "measure": True}, top, timeout_s)


def _run(job: Mapping[str, object], top: Path, timeout_s: float) -> ProbeReport | str:
    encoded = json.dumps(job).encode("ascii")
    ended = run_boxed(_SCRIPT, [], top, job=encoded, timeout_s=timeout_s)
    report = read(ended, ProbeReport, str(job["nonce"]))
    if isinstance(report, str):
        last = next(reversed(ended.log.strip().splitlines()), "")
        return as_seen(f"{report}; {last}" if last else report, top)
    assert isinstance(report, ProbeReport)
    return report


def _not_imported(
    case: Case, paths: Mapping[str, str], before: ProbeReport | None, after: ProbeReport
) -> Iterator[Unknown]:
    """Modules of which nothing was seen, but for those that the change has nothing to do with."""
    known = before.failed if before else {}
    for name, why in after.failed.items():
        path = paths.get(name, "")
        if known.get(name) != why or case.change.entry(path) is not None:
            yield Unknown(path, f"`{name}` can not be imported here: {why}")


def _late(
    case: Case, modules: Modules, before: ProbeReport | None, after: ProbeReport, root: str
) -> Iterator[Difference]:
    """Differences of modules that import governed ones themselves: between the two trees."""
    for name, now in after.states.items():
        was = before.states.get(name) if before else None
        path = modules.path_of(name)
        if was is None or path is None or case.change.entry(path) is not None:
            continue
        for key in {**was, **now}:
            if was.get(key) != now.get(key):
                how = f"is {now[key]}" if key in now else "is gone"
                yield Difference(root, name + key, how)
