# SPDX-License-Identifier: Apache-2.0
"""What a plan says that follows from its commit: written when it is made, compared before signing.

A plan travels to where cells are measured and back. Whatever of it git can tell is told again by
git before anything is signed; a plan that names fewer tests, or more that may be read unseen, would
else make less be shown than was asked. Seeds and ids follow from nothing: those are only as good as
the place that the plan comes from.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fasttrack.case import lies_in
from fasttrack.change.tree import Tree
from fasttrack.evidence.inputs import InputGraph, UnitInputs
from fasttrack.evidence.plan import LOADED
from fasttrack.manifest.model import Manifest


@dataclass(frozen=True)
class Derived:
    """What follows from a commit, of one manifest there.

    Attributes:
        roots: the manifest's roots.
        unbound: files and directories that may be read although no digest has them.
        beside: files outside the roots that Python could import, and those of `unbound`.
        patterns_of: a unit's test patterns.
        variants_of: a unit's variant table, where it has one.
        inputs_of: a unit's inputs; raises InputError where they can not be told.
    """

    roots: tuple[str, ...]
    unbound: tuple[str, ...]
    beside: tuple[str, ...]
    patterns_of: Callable[[str], tuple[str, ...]]
    variants_of: Callable[[str], str | None]
    inputs_of: Callable[[str], UnitInputs]


def derived(tree: Tree, manifest: Manifest, graph: InputGraph) -> Derived:
    """What follows from a commit.

    Args:
        tree: the commit's.
        manifest: one of its manifests.
        graph: of the same tree and manifest.
    """
    roots, unbound = tuple(manifest.code.roots), graph.paths.unbound
    return Derived(
        roots=roots,
        unbound=unbound,
        beside=tuple(_beside(tree, roots, unbound)),
        patterns_of=graph.paths.patterns_of,
        variants_of={unit.id: unit.variants for unit in manifest.units}.get,
        inputs_of=graph.required_inputs,
    )


def _beside(tree: Iterable[str], roots: tuple[str, ...], unbound: tuple[str, ...]) -> Iterable[str]:
    for path in tree:
        if not lies_in(roots, path) and (path.endswith(LOADED) or lies_in(unbound, path)):
            yield path
