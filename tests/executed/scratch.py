# SPDX-License-Identifier: Apache-2.0
"""A small engine whose changes are run, and the facts of one of them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from fasttrack.case import Case
from fasttrack.change.read import read_change
from fasttrack.config import read_base_manifests, read_config, read_head_manifests
from fasttrack.evidence.wall import stands_around
from fasttrack.executed.box import can_be_boxed
from fasttrack.testing import Content, Repo
from tests.engine import AS_OF, files

sandboxed = pytest.mark.skipif(
    not (can_be_boxed() and stands_around(Path.cwd())),
    reason="takes Landlock and seccomp, which this system does not have",
)
TIMEOUT_S = 120.0
TEST = "tests/foo/test_attention.py"

SHARED = {
    "engine/__init__.py": "",
    "engine/foo/__init__.py": "",
    "engine/ops.py": """
import abc
import functools
import sys

LIMIT = 1
KNOWN = sys.modules
TABLE = {"auto": 0, "other": [1, 2]}
NAMES = ["auto"]
FLAGS = {"a"}


def scale(x, by=2, *, up=True):
    return x * by if up else x


def alpha(x):
    return x


def beta(x):
    return x


def outer(by):
    def inner(x):
        return x * by
    return inner


twice = outer(2)


@functools.wraps(scale)
def wrapped(*args, **kwargs):
    return scale(*args, **kwargs)


class Registry:
    def __init__(self):
        self.entries = {"auto": scale}

    def register(self, name):
        def keep(f):
            self.entries[name] = f
            return f
        return keep


class Layer:
    width = 4
    kinds = []

    def forward(self, x):
        return x

    @staticmethod
    def start():
        return 0

    @property
    def size(self):
        return 1


class Kernel(abc.ABC):
    pass


REGISTRY = Registry()
""",
}


@contextmanager
def facts(
    where: Path, base: Mapping[str, Content], change: Mapping[str, Content]
) -> Iterator[Case]:
    """A change of the engine, with nothing executed yet."""
    repo = Repo(where / "repo", bare=True)
    tip = repo.commit("main", {**files(), **SHARED, **base})
    repo.commit("topic", change, parent=tip)
    with read_change(where / "repo", target="main", head="topic") as read:
        config = read_config(read, folder=None, policy_file=None)
        manifests = read_base_manifests(read, config), read_head_manifests(read, config)
        yield Case(read, config, *manifests, AS_OF)


def cases(name: str) -> Any:
    """A file of `tests/cases/executed`."""
    file = Path(__file__).parent.parent / "cases" / "executed" / f"{name}.yaml"
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def silent(_: str) -> None:
    """Takes no notice of progress."""
