# SPDX-License-Identifier: Apache-2.0
"""What a manifest says that decides what a run of a unit is: the roots, and which test files run.

Both are in the tests digest, so that a run under other words of the manifest is a run of something
else. Nothing else of a manifest is: neither tiers, nor leases, nor other units, nor how the
patterns are written that lead to the same files.

    judging/v1    SHA-256 over the records of `files/v1`, then `root <path>` NUL for each root, then
                `run <path>` NUL for each test file that runs, each in byte order
"""

import ast
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from fasttrack.change.tree import path_bytes
from fasttrack.evidence.digest import InputFile, records
from fasttrack.globs import matches

_NO_TESTS = frozenset({"__init__.py", "conftest.py"})


def runs_of(paths: Iterable[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """The test files that run, in the order given.

    Args:
        paths: a unit's tests and what they need.
        patterns: the unit's test patterns.
    """
    return tuple(
        path
        for path in paths
        if path.endswith(".py")
        and PurePosixPath(path).name not in _NO_TESTS
        and any(matches(pattern, path) for pattern in patterns)
    )


def judging_digest(files: Iterable[InputFile], roots: Iterable[str], runs: Iterable[str]) -> str:
    """The digest `judging/v1`, lower-case hexadecimal, whatever the order of the arguments.

    Raises:
        FactUnavailable: one of the files is a link.
    """
    digest = hashlib.sha256(records(files))
    for word, paths in (("root", roots), ("run", runs)):
        for path in sorted({path_bytes(path) for path in paths}):
            digest.update(word.encode("ascii") + b" " + path + b"\0")
    return digest.hexdigest()


def defines_tests(text: str) -> bool:
    """Whether pytest surely finds a test in a source: a function of its own at the top."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return False
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not any("fixture" in ast.unparse(decorator) for decorator in node.decorator_list)
        for node in body
    )
