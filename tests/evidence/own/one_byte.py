# SPDX-License-Identifier: Apache-2.0
"""Edits of one byte that change nothing of what a file imports or names."""

import ast
import io
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from random import Random

from .dependencies import Commit, Dependencies, reads

Places = Mapping[str, Sequence[int]]
"""What a byte is part of, to the offsets of such bytes in a text."""


TEXTS = (".md", ".py", ".sh", ".toml", ".yaml")
"""Ends of files that are text."""


def changed(commit: Commit, path: str) -> tuple[dict[str, str], str]:
    """A file of which one byte is another, or has one more; and what that byte is part of.

    The choice follows from the path, so that every run makes the same.
    """
    text = commit.text(path)
    new, what = _edited(path, text)
    assert sum(a != b for a, b in zip(text, new, strict=False)) + len(new) - len(text) == 1
    if path.endswith(".py"):
        assert reads(path, new).modules == reads(path, text).modules
    return {path: new}, what


def elsewhere(own: Dependencies) -> list[str]:
    """Files of text that no unit depends on; those beside the manifests have tests of their own."""
    used = set().union(*(u.files | u.tests | u.boundary for u in own.units.values()))
    found = (path for path in own.commit.paths - used if path.endswith(TEXTS))
    return sorted(path for path in found if not path.startswith("manifests/"))


def _edited(path: str, text: str) -> tuple[str, str]:
    random = Random(path)
    places = _places(path, text)
    what = random.choice(sorted(places))
    if what == "end":
        return text + "\n", what
    at = random.choice(places[what])
    other = str((int(text[at]) + 1) % 10) if what == "number" else text[at].swapcase()
    return text[:at] + other + text[at + 1 :], what


def _places(path: str, text: str) -> Places:
    found: dict[str, list[int]] = {"end": [len(text)]}
    for what, at in _python(text) if path.endswith(".py") else _lines(text):
        found.setdefault(what, []).append(at)
    return found


def _lines(text: str) -> Iterator[tuple[str, int]]:
    """Letters of lines that are comments, as in YAML and TOML."""
    start = 0
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("#"):
            yield from (("comment", start + at) for at in _letters(line))
        start += len(line)


def _python(text: str) -> Iterator[tuple[str, int]]:
    """Letters of comments and of docstrings, and last digits of numbers."""
    starts = [0]
    for line in io.StringIO(text, newline=""):
        starts.append(starts[-1] + len(line))
    docs = _docstrings(text)
    for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
        at = starts[token.start[0] - 1] + token.start[1]
        if token.type == tokenize.COMMENT:
            yield from (("comment", at + letter) for letter in _letters(token.string))
        elif token.type == tokenize.STRING and token.start in docs:
            quoted = token.string.rstrip("\"'")
            yield from (("docstring", at + letter) for letter in _letters(quoted) if letter >= 3)
        elif token.type == tokenize.NUMBER and token.string.isdecimal():
            yield "number", at + len(token.string) - 1


def _docstrings(text: str) -> set[tuple[int, int]]:
    """Where they start; a character of the tree's is a byte, of which letters here are one."""
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, owners)]
    firsts = (node.body[0] for node in nodes if ast.get_docstring(node, clean=False))
    return {(first.lineno, first.col_offset) for first in firsts}


def _letters(text: str) -> list[int]:
    return [at for at, letter in enumerate(text) if letter.isascii() and letter.isalpha()]
