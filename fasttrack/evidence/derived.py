# SPDX-License-Identifier: Apache-2.0
"""What a plan says that follows from its commit: written when it is made, compared before signing.

A plan travels to where cells are measured and back. Whatever of it git can tell is told again by
git before anything is signed; a plan that names fewer tests, or more that may be read unseen, would
else make less be shown than was asked. Seeds and ids follow from nothing: those are only as good as
the place that the plan comes from.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from fasttrack.case import Config
from fasttrack.change.tree import Tree
from fasttrack.evidence.inputs import InputGraph, UnitInputs
from fasttrack.evidence.subject import tested_with
from fasttrack.globs import matches
from fasttrack.manifest.model import Manifest

SETTINGS = ("pyproject.toml", "pytest.ini", "pytest.toml", "setup.cfg", "tox.ini")
"""Files that pytest reads for its own sake."""
_NO_TESTS = frozenset({"__init__.py", "conftest.py"})


@dataclass(frozen=True)
class Derived:
    """What follows from a commit, of one manifest there.

    Attributes:
        roots: the manifest's roots.
        unbound: files and directories that may be read although no digest has them.
        patterns_of: a unit's test patterns.
        inputs_of: a unit's inputs; raises InputError where they can not be told.
    """

    roots: tuple[str, ...]
    unbound: tuple[str, ...]
    patterns_of: Callable[[str], tuple[str, ...]]
    inputs_of: Callable[[str], UnitInputs]

    def tests_of(self, inputs: UnitInputs) -> tuple[str, ...]:
        """The test files that can be run, among a unit's tests and what they need."""
        patterns = self.patterns_of(inputs.unit)
        return tuple(
            file.path
            for file in inputs.tests
            if file.path.endswith(".py")
            and PurePosixPath(file.path).name not in _NO_TESTS
            and any(matches(pattern, file.path) for pattern in patterns)
        )


def derived(tree: Tree, manifest: Manifest, config: Config, graph: InputGraph) -> Derived:
    """What follows from a commit.

    Args:
        tree: the commit's.
        manifest: one of its manifests.
        config: tells the configuration folder.
        graph: of the same tree and manifest.
    """

    def patterns_of(unit: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(p for u in tested_with(manifest, unit) for p in u.tests))

    return Derived(
        roots=tuple(manifest.code.roots),
        unbound=(f"{config.folder}/", *(path for path in SETTINGS if path in tree)),
        patterns_of=patterns_of,
        inputs_of=graph.required_inputs,
    )
