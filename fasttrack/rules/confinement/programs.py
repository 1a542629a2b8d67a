# SPDX-License-Identifier: Apache-2.0
"""Which files are read by programs, so that what a person sees must be what they say."""

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.policy.classes import fold
from fasttrack.rules.confinement.readable import text_of

_SUFFIXES = frozenset(
    [
        ".py",
        ".pyi",
        ".pyw",
        ".pyx",
        ".pxd",
        ".pxi",
        ".c",
        ".h",
        ".cc",
        ".cpp",
        ".cxx",
        ".hh",
        ".hpp",
        ".hxx",
        ".inl",
        ".cu",
        ".cuh",
        ".ptx",
        ".hip",
        ".cl",
        ".metal",
        ".s",
        ".asm",
        ".rs",
        ".go",
        ".java",
        ".kt",
        ".scala",
        ".swift",
        ".js",
        ".mjs",
        ".cjs",
        ".ts",
        ".jsx",
        ".tsx",
        ".lua",
        ".rb",
        ".pl",
        ".jl",
        ".sh",
        ".bash",
        ".zsh",
        ".fish",
        ".ps1",
        ".bat",
        ".cmd",
        ".cmake",
        ".mk",
        ".bzl",
        ".nix",
        ".sql",
        ".toml",
        ".ini",
        ".cfg",
        ".proto",
        ".jinja",
        ".j2",
    ]
)
"""Languages and settings. Left out are YAML, JSON, XML and text, in which translations live."""
_NAMES = frozenset({"makefile", "gnumakefile", "dockerfile", "containerfile", "justfile", "build"})


def is_program(case: Case, entry: Entry) -> bool:
    """Whether the new side is a program or its settings: by its place, name or first line.

    Raises:
        FactUnavailable: its first line can not be read.
    """
    name = fold(entry.path).rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    return (
        case.governing(entry.path) is not None
        or name in _NAMES
        or (bool(stem) and dot + suffix in _SUFFIXES)
        or (text_of(case, entry.new) or "").startswith("#!")
    )
