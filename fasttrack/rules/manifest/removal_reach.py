# SPDX-License-Identifier: Apache-2.0
"""FT322: removing the path deletes nothing that others need."""

from collections.abc import Iterator

from fasttrack.case import Case, in_roots
from fasttrack.change.tree import Tree
from fasttrack.finding import Level
from fasttrack.manifest.consistency import Fault, holds_path
from fasttrack.manifest.model import Manifest
from fasttrack.policy.model import PathClass
from fasttrack.rules.manifest.edited import ManifestRule, first_of

OWN = frozenset({PathClass.TESTS, PathClass.DOCS, PathClass.GENERATED})
"""Classes of files outside the roots that a path may take with it when it goes."""


class RemovalReach(ManifestRule):
    """Removal steps that delete files of others."""

    id = "FT322"
    slug = "removal-reach"
    title = "removal deletes only what is the path's own"
    level = Level.ROUTE
    refuses = (
        "In an added or edited manifest, an entry of `lease.removal.paths` that is or holds a file "
        "which is neither in the roots, nor tests, documentation or generated, nor the manifest."
    )
    why = "The removal of an expired path is proposed by a machine, and it deletes what is listed."
    blind = "Tests and documents of others; the removal's own change is read as well."
    fix = "list the path's own files and folders one by one"

    def faults(self, case: Case, manifest: Manifest, tree: Tree) -> Iterator[Fault]:
        """Looks at the files under every entry that reaches beyond the roots."""
        own = {path for path, m in case.head.valid.items() if m.name == manifest.name}
        for i, path in enumerate(manifest.lease.removal.paths):
            if in_roots(manifest, path):
                continue
            foreign = [
                p
                for p in tree
                if holds_path(path, p)
                and not in_roots(manifest, p)
                and case.path_class(p) not in OWN
                and p not in own
            ]
            if foreign:
                saw = f"a removal of `{path}`, which deletes {first_of(foreign)}"
                where = ("lease", "removal", "paths", i)
                yield Fault(where, saw, "the path's own files")
