# SPDX-License-Identifier: Apache-2.0
"""A YAML document that was read: its values and their places."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from fasttrack.strict_yaml.plain import Scalar

Path = Sequence[str | int]
Mark = tuple[int, int]
"""Line and column, both from 1."""
Data = Scalar | list["Data"] | dict[str, "Data"]


@dataclass(slots=True)
class Node:
    """One value with its place; `key` is the place of its key when it has one."""

    value: Data
    mark: Mark
    key: Mark | None = None
    children: "dict[str, Node] | list[Node]" = field(default_factory=list)

    def child(self, step: str | int) -> "Node | None":
        """The value below a key or index, or None."""
        if isinstance(self.children, dict):
            return self.children.get(step) if isinstance(step, str) else None
        if isinstance(step, int) and 0 <= step < len(self.children):
            return self.children[step]
        return None


@dataclass(frozen=True)
class Document:
    """A text that was read without a problem.

    Attributes:
        source: how messages name the text.
        root: the values with their places.
    """

    source: str
    root: Node

    @property
    def data(self) -> Data:
        """The content as plain dict, list, str, int, float, bool, None and date."""
        return self.root.value

    def mark(self, path: Path, *, key: bool = False) -> Mark:
        """Line and column of the deepest value on a path that exists.

        Args:
            path: keys and indices from the root.
            key: ask for the key of that value; a list item and the root have none, and the
                place of the value is given.
        """
        node = self.root
        for step in path:
            child = node.child(step)
            if child is None:
                break
            node = child
        return node.key or node.mark if key else node.mark

    def where(self, path: Path, *, key: bool = False) -> str:
        """`source:line:column` of the same place, as a `Problem` names it."""
        return where(self.source, self.mark(path, key=key))


def where(source: str, mark: Mark) -> str:
    """A place as a `Problem` names it."""
    return f"{source}:{mark[0]}:{mark[1]}"
