# SPDX-License-Identifier: Apache-2.0
"""The tests that manifests name, and how pytest is run over them in a scratch folder."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from fasttrack.case import Case
from fasttrack.change.tree import Side, Tree
from fasttrack.executed.reports import TestsReport, new_nonce, read
from fasttrack.executed.sandbox import package_folders, run_boxed
from fasttrack.executed.scratch import as_seen, scratch_tree
from fasttrack.globs import matches
from fasttrack.meaning.modules import Modules
from fasttrack.policy.model import PathClass

SETTINGS = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""Files at the top that tell pytest what to collect and how."""
_SCRIPT = Path(__file__).parent / "inside" / "tests.py"
_OPTIONS = ("-q", "-p", "no:cacheprovider", "-rN", "--continue-on-collection-errors")
_USABLE_CODES = (0, 1, 2, 5)
"""Exit codes of pytest after which its report is whole: passed, failed, not collected, no tests."""


class NamedTests:
    """Which tests the manifests of a change name, at the target's tip or after the merge."""

    def __init__(self, case: Case) -> None:
        """Looks into the manifests."""
        manifests = [*case.base.valid.values(), *case.head.valid.values()]
        units = [unit for manifest in manifests for unit in manifest.units]
        self._patterns = tuple(dict.fromkeys(p for unit in units for p in unit.tests))
        ids = [id_ for manifest in manifests for id_ in manifest.evidence.tests]
        self._files = tuple(dict.fromkeys(id_.partition("::")[0] for id_ in ids))

    def names(self, path: str) -> bool:
        """Whether a file is among them."""
        return path in self._files or any(matches(p, path) for p in self._patterns)

    def arguments(self, tree: Tree) -> list[str]:
        """What to hand to pytest: folders, so that its own settings choose, and single files."""
        found: dict[str, None] = {}
        for pattern in self._patterns:
            folder = pattern.removesuffix("/**")
            if folder != pattern and not set(folder) & set("*?"):
                if tree.has_folder(folder):
                    found[folder] = None
            else:
                found |= dict.fromkeys(p for p in tree if matches(pattern, p) and _is_test(p))
        return [*found, *(file for file in self._files if file in tree and file not in found)]


def _is_test(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.endswith("_test.py") or (name.startswith("test_") and name.endswith(".py"))


def of_base(case: Case, named: NamedTests, tree: Tree) -> Mapping[str, Side | None]:
    """What gives a tree the tests, settings and reference of the target's tip: path to those."""
    base = case.change.base
    paths = {p for where in (base, tree) for p in where if _judges(case, named, p)}
    return {path: base.get(path) for path in paths if base.get(path) != tree.get(path)}


def _judges(case: Case, named: NamedTests, path: str) -> bool:
    if case.path_class(path) is PathClass.REFERENCE:
        return True
    if case.governing(path) is not None and not named.names(path):
        return False
    return (
        path in SETTINGS
        or path.rpartition("/")[2] == "conftest.py"
        or case.path_class(path) is PathClass.TESTS
        or named.names(path)
    )


def run_pytest(
    case: Case,
    tree: Tree,
    other: Mapping[str, Side | None],
    arguments: Iterable[str],
    *,
    collect_only: bool,
    timeout_s: float,
) -> TestsReport | str:
    """Runs pytest over a tree, or says why nothing came of it.

    Args:
        case: the change.
        tree: what to write to the scratch folder.
        other: what is there instead.
        arguments: files, folders and ids.
        collect_only: run no test.
        timeout_s: seconds that it may take.

    Raises:
        FactUnavailable: the tree can not be written to disk.
        InputError: something that was started can not be killed.
    """
    options = [*_OPTIONS, *(["--collect-only"] if collect_only else [])]
    with scratch_tree(case.change, tree, other) as top:
        job = {
            "nonce": new_nonce(),
            "folders": [str(top / folder) for folder in _folders(case, tree)],
            "packages": package_folders(),
            "options": [*options, f"--rootdir={top}"],
            "tests": list(arguments),
        }
        encoded = json.dumps(job).encode("ascii")
        ended = run_boxed(_SCRIPT, [], top, job=encoded, timeout_s=timeout_s)
        report = read(ended, TestsReport, str(job["nonce"]))
        last = as_seen(next(reversed(ended.log.strip().splitlines()), ""), top)
    if isinstance(report, str):
        return f"{report}; {last}" if last else report
    assert isinstance(report, TestsReport)
    if report.exit_code not in _USABLE_CODES:
        return f"pytest ended with exit code {report.exit_code}; {last}"
    return report


def _folders(case: Case, tree: Tree) -> Iterator[str]:
    """Where the governed packages are imported from."""
    roots = [root for m in case.head.valid.values() for root in m.code.roots]
    modules = Modules(tree, roots, case.policy.imports)
    found = {"": None}
    for root in roots:
        path = root if root.endswith(".py") else f"{root}__init__.py"
        name = modules.name_of(path)
        stem = path.removesuffix(".py").removesuffix("/__init__")
        found[stem.removesuffix(name.replace(".", "/"))] = None
    return iter(found)
