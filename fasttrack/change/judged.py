# SPDX-License-Identifier: Apache-2.0
"""The judged tree: what a merge of the head into the target branch would leave."""

from dataclasses import dataclass

from fasttrack.change.git import Git
from fasttrack.errors import FactUnavailable

MERGE_BLOB_LIMIT = 64 * 1024 * 1024
"""Bytes of the largest changed blob with which a merge is tried: git reads whole files for it."""


@dataclass(frozen=True)
class Merge:
    """What merging gave.

    Attributes:
        tree: id of the merged tree; None when it conflicts.
        conflicts: conflicting paths in byte order; may be empty even though `tree` is None.
    """

    tree: str | None
    conflicts: tuple[str, ...]


def merge(git: Git, base_tip: str, head: str, largest: int) -> Merge:
    """Merge without index or working tree; new objects stay in the temporary store.

    Args:
        git: the repository.
        base_tip: commit at the tip of the target branch.
        head: commit that is judged.
        largest: bytes of the largest blob that the change brings.

    Raises:
        FactUnavailable: a blob too large to merge, or objects that are not in this clone.
    """
    if largest > MERGE_BLOB_LIMIT:
        raise FactUnavailable(
            f"the change brings a file of {largest:,} bytes; a merge is tried up to"
            f" {MERGE_BLOB_LIMIT:,}"
        )
    options = ("--write-tree", "-z", "--name-only", "--no-messages")
    output = git.run("merge-tree", *options, base_tip, head, accept=(0, 1))
    tree, *paths = output.out.decode("utf-8", "surrogateescape").removesuffix("\0").split("\0")
    if output.code:
        return Merge(None, tuple(paths))
    return Merge(tree, ())
