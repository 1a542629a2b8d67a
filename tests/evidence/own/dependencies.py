# SPDX-License-Identifier: Apache-2.0
"""A second reading of what the units of a manifest depend on, from `docs/evidence.md` alone.

Nothing of `fasttrack` is imported here. Git lists the files and matches the patterns, manifest and
policy are plain YAML, and an import leads where Python finds it with the repository's top on its
search path: nothing of this repository needs the other places that the page lets a name stand for.
Sources are Python; whoever asks makes sure that a unit has no others.
"""

import ast
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

GATE = "gate-files"
"""What refusals speak of: the gate's files, and the tests of the units that have one of them."""
JUDGES = ("tests", "reference")
"""Classes of the policy that hold tests, harness and oracle."""


class Commit:
    """The files of one commit, as git lists and matches them.

    Attributes:
        sides: path to mode and object.
        paths: the same without what they hold.
    """

    def __init__(self, repo: Path, commit: str, index: Path) -> None:
        """Reads the commit's names into an index of its own; no file is checked out."""
        self._repo = repo
        self._environment = {**os.environ, "GIT_INDEX_FILE": str(index)}
        self._texts: dict[str, str] = {}
        self._git("read-tree", commit)
        staged = filter(None, self._git("ls-files", "--stage", "-z").split("\0"))
        split = (entry.partition("\t") for entry in staged)
        self.sides = {path: head.removesuffix(" 0") for head, _, path in split}
        self.paths = frozenset(self.sides)

    def matching(self, *patterns: str) -> frozenset[str]:
        """The files that patterns name; a `*` stops at a `/`."""
        globs = [f":(glob){pattern}" for pattern in patterns]
        return frozenset(filter(None, self._git("ls-files", "-z", *globs).split("\0")))

    def text(self, path: str) -> str:
        """What a file holds."""
        if path not in self._texts:
            self._texts[path] = self._git("cat-file", "blob", f":{path}")
        return self._texts[path]

    def _git(self, *words: str) -> str:
        argv = ["git", "-C", str(self._repo), *words]
        return subprocess.run(
            argv, env=self._environment, check=True, capture_output=True, encoding="utf-8"
        ).stdout


@dataclass(frozen=True)
class Depends:
    """What one unit depends on, by path."""

    files: frozenset[str]
    tests: frozenset[str]
    boundary: frozenset[str]


class Dependencies:
    """What the units of one manifest depend on, at one commit.

    Attributes:
        commit: its files.
    """

    def __init__(self, commit: Commit, manifest: str, policy: str) -> None:
        """Takes the repository paths of a manifest and of its policy."""
        self.commit = commit
        self._manifest: Mapping[str, Any] = yaml.safe_load(commit.text(manifest))
        self._policy: Mapping[str, Any] = yaml.safe_load(commit.text(policy))
        self._direct: dict[str, Reads] = {}

    @cached_property
    def units(self) -> Mapping[str, Depends]:
        """Every unit that a cell of the manifest can speak of, to what it depends on."""
        code, units = self._manifest["code"], self._manifest["units"]
        own = {u["id"]: self.commit.matching(*u["files"], *u.get("data", ())) for u in units}
        tests = {u["id"]: frozenset(u["tests"]) for u in units}
        gate = frozenset(code["gate"])
        own[GATE] = gate
        tests[GATE] = frozenset().union(*(tests[u["id"]] for u in units if own[u["id"]] & gate))
        return {unit: self._depends(files, tests[unit]) for unit, files in own.items()}

    def moved(self, before: "Dependencies") -> frozenset[str]:
        """The units of which a file or a test came, went, or is not what it was."""
        return frozenset(unit for unit in self.units if self._bytes(unit) != before._bytes(unit))

    def _bytes(self, unit: str) -> list[dict[str, str]]:
        mine = self.units[unit]
        return [{p: self.commit.sides[p] for p in paths} for paths in (mine.files, mine.tests)]

    def _depends(self, own: frozenset[str], tests: Iterable[str]) -> Depends:
        files = self._closure(own, self.roots)
        judges = self._imported_by(files) & self.judges - self.roots
        ran = self.commit.matching(*tests)
        above = frozenset().union(*map(_conftests, ran)) & self.commit.paths
        judging = self._closure(ran | above | judges, self.judges | self.roots)
        near = self._imported_by(files | judging) - self.roots
        return Depends(files, judging - files, near - files - judging)

    @cached_property
    def roots(self) -> frozenset[str]:
        """Every file below the manifest's roots."""
        return frozenset(
            p for p in self.commit.paths if p.startswith(tuple(self._manifest["code"]["roots"]))
        )

    @cached_property
    def judges(self) -> frozenset[str]:
        """Every file of a class that judges; the first class that matches is a file's own."""
        found: set[str] = set()
        left = set(self.commit.paths)
        for group in self._policy["paths"]:
            mine = left & self.commit.matching(*group["match"])
            left -= mine
            if group["class"] in JUDGES:
                found |= mine
        return frozenset(found)

    def _closure(self, start: Iterable[str], within: frozenset[str]) -> frozenset[str]:
        found: set[str] = set()
        waiting = set(start)
        while waiting:
            path = waiting.pop()
            found.add(path)
            reads = self.reads(path)
            waiting |= (self._imported(path) | self._named(path, reads.words)) & within - found
        return frozenset(found)

    def reads(self, path: str) -> "Reads":
        """What a file says of others; nothing when it is no Python source."""
        if path not in self._direct:
            text = self.commit.text(path) if path.endswith(".py") else ""
            self._direct[path] = reads(path, text)
        return self._direct[path]

    def _imported(self, path: str) -> frozenset[str]:
        """What a file imports, and the `__init__.py` files that run before it."""
        found = {file for module in self.reads(path).modules for file in _files(module)}
        if path.endswith(".py"):
            found |= {str(folder / "__init__.py") for folder in PurePosixPath(path).parents}
        return self.commit.paths & found - {path}

    def _imported_by(self, paths: Iterable[str]) -> frozenset[str]:
        return frozenset().union(*map(self._imported, paths))

    def _named(self, path: str, words: Iterable[str]) -> frozenset[str]:
        """Files whose paths end with a string, and the module that one is the name of."""
        ends = tuple(f"/{word}" for word in words if "." in word)
        modules = {file for word in words if "." in word for file in _files(word)}
        if path.endswith("/__init__.py"):
            package = ".".join(PurePosixPath(path).parent.parts)
            modules |= {file for word in words for file in _files(f"{package}.{word}")}
        return frozenset(p for p in self.commit.paths if p in modules or f"/{p}".endswith(ends))


@dataclass(frozen=True)
class Reads:
    """What a source says of other files.

    Attributes:
        modules: dotted names that it may import, with the packages around each.
        words: its strings.
    """

    modules: frozenset[str]
    words: frozenset[str]


def reads(path: str, text: str) -> Reads:
    """What a Python source at a path says of other files."""
    running = list(_running(ast.parse(text)))
    strings = (n.value for n in running if isinstance(n, ast.Constant) and type(n.value) is str)
    words = frozenset(word for word in strings if word and not set(word) & set(" \n"))
    return Reads(frozenset(_modules(path, running)), words)


def _files(module: str) -> tuple[str, str]:
    stem = module.strip(".").replace(".", "/")
    return f"{stem}.py", f"{stem}/__init__.py"


def _conftests(test: str) -> Iterator[str]:
    for folder in PurePosixPath(test).parents:
        yield str(folder / "conftest.py")


def _modules(path: str, running: Iterable[ast.AST]) -> Iterator[str]:
    package = PurePosixPath(path).parent.parts
    for node in running:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *filter(None, [node.module])])
            names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            parts = name.split(".")
            yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """Every node that can run: what only type checkers see is left out."""
    for child in ast.iter_child_nodes(node):
        yield child
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            for other in child.orelse:
                yield other
                yield from _running(other)
        else:
            yield from _running(child)
