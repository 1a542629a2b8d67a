# SPDX-License-Identifier: Apache-2.0
"""Keeps a candidate's process from modules that know an answer.

A candidate that imports the oracle, or a path to fall back to, is told apart from one that can do
without. It is no prison: Python can be talked into reading a file. What was asked for is reported,
whether the import was survived or not.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

PACKAGE = "kimi_k3"
CANDIDATES_OWN = (
    *(f"kimi_k3.validation.{name}" for name in ("arena", "attach", "child", "controls", "cubins")),
    *(f"kimi_k3.validation.{name}" for name in ("launcher", "memory", "server", "wall")),
    "kimi_k3.decode.kernels",
)
"""Modules of this package that a candidate's process may have, with what lies below them; all
others may know an answer, or be something to fall back to."""


def allowed(name: str) -> bool:
    """Whether a candidate's process may import a module."""
    if name != PACKAGE and not name.startswith(f"{PACKAGE}."):
        return True
    return any(
        name == one or name.startswith(f"{one}.") or one.startswith(f"{name}.")
        for one in CANDIDATES_OWN
    )


class Wall(MetaPathFinder):
    """Refuses imports of what is not `allowed`.

    Attributes:
        asked: what was asked for and refused.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Refuses, or leaves it to the next finder.

        Raises:
            ModuleNotFoundError: it is not allowed.
        """
        if not allowed(name):
            self.asked.append(name)
            raise ModuleNotFoundError(f"{name} is not for candidates", name=name)
        return None


def raised() -> Wall:
    """A wall, from now on.

    Raises:
        RuntimeError: what it keeps out is here already.
    """
    here = [name for name in sys.modules if not allowed(name)]
    if here:
        raise RuntimeError(f"{here[0]} was imported before the candidate")
    wall = Wall()
    sys.meta_path.insert(0, wall)
    return wall
