# SPDX-License-Identifier: Apache-2.0
"""Hostile texts: YAML, source code and diffs that are deep, wide, long or hard to compare."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from fasttrack.testing import Content
from tests.engine import KERNEL, MANIFEST, POLICY, ROOT, SHARED
from tests.hostile.case import (
    BAD_INPUT,
    GATE,
    ORDINARY,
    REFUSED,
    TABLE,
    Hostile,
    manifest,
    tabled,
    topic,
    wired,
)

MEBIBYTE = 1 << 20
DEEP = 100_000

YAML: Mapping[str, Callable[[], str]] = {
    "flow lists in each other": lambda: "a: " + "[" * DEEP + "]" * DEEP + "\n",
    "flow mappings in each other": lambda: "a: " + "{a: " * DEEP + "1" + "}" * DEEP + "\n",
    "a list in a list in a list": lambda: "- " * (MEBIBYTE // 2 - 2) + "a\n",
    "blocks that each go one deeper": lambda: "\n".join(" " * n + "a:" for n in range(1400)) + "\n",
    "100,000 keys": lambda: "".join(f"k{n:05}: 1\n" for n in range(DEEP)),
    "an empty mapping of 100,000 keys": lambda: "{" + "a," * 100_000 + "}\n",
    "a list of a mebibyte": lambda: "units: [" + "1," * (MEBIBYTE // 2 - 8) + "]\n",
    "aliases of aliases": lambda: (
        "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    ),
    "100,000 anchors": lambda: "".join(f"k{n}: &a{n} 1\n" for n in range(50_000)),
    "a text of a mebibyte": lambda: "summary: '" + "x" * (MEBIBYTE - 20) + "'\n",
    "a key of a mebibyte": lambda: "? " + "x" * (MEBIBYTE - 20) + "\n: 1\n",
    "a number of a mebibyte": lambda: "manifest: " + "9" * (MEBIBYTE - 20) + "\n",
    "a comment of four mebibytes": lambda: "#" + "x" * (4 * MEBIBYTE - 2) + "\n",
    "NUL bytes": lambda: "\0" * MEBIBYTE,
    "100,000 documents": lambda: "--- 1\n" * DEEP,
    "quotes that never end": lambda: 'a: "' + "\\" * MEBIBYTE,
}

SOURCES: Mapping[str, Callable[[], str]] = {
    "nested parentheses": lambda: "x = " + "(" * DEEP + ")" * DEEP + "\n",
    "chained attributes": lambda: "x = a" + ".b" * DEEP + "\n",
    "chained calls": lambda: "x = a" + "()" * DEEP + "\n",
    "unary minus": lambda: "x = " + "-" * DEEP + "1\n",
    "`not` of `not`": lambda: "x = " + "not " * DEEP + "1\n",
    "a sum of 100,000": lambda: "x = " + "+".join(["'a'"] * DEEP) + "\n",
    "lambdas": lambda: "x = " + "lambda: " * DEEP + "1\n",
    "`if` in `else` in `else`": lambda: "if a: pass\n" + "elif a: pass\n" * DEEP,
    "indentation": lambda: "".join(" " * n + "if a:\n" for n in range(300)) + " " * 300 + "b\n",
    "f-strings": lambda: "x = " + 'f"{' * 1000 + "1" + '}"' * 1000 + "\n",
    "a number of a megabyte": lambda: "x = " + "9" * 1_000_000 + "\n",
    "words of a mebibyte": lambda: "a;" * (MEBIBYTE // 2 - 1) + "\n",
    "a text of 3 megabytes": lambda: "x = '" + "y" * 3_000_000 + "'\n",
}
PLACES: Mapping[str, tuple[str, Callable[[], Mapping[str, Content]]]] = {
    "roots": (KERNEL, dict),
    "gate": (GATE, dict),
    "wired file": (SHARED, wired),
}


def _change(
    where: Path, path: str, text: Callable[[], Content], before: Mapping[str, Content]
) -> None:
    topic(where, {ROOT + "other.py": "X = 1\n", path: text()}, before=before)


def _in_force(where: Path, path: str, text: Callable[[], str]) -> None:
    topic(where, {KERNEL: "BLOCK = 64\n"}, before={path: text()})


def _patched(where: Path, text: Callable[[], str]) -> None:
    _change(
        where, MANIFEST, lambda: manifest("summary: Describe", text() + "summary: Describe"), {}
    )


def _diff(where: Path, path: str, old: Callable[[], str], new: Callable[[], str]) -> None:
    topic(where, {path: new(), ROOT + "other.py": "X = 1\n"}, before={path: old()})


def _numbers(step: int, count: int) -> str:
    return "".join(f"{n}\n" for n in range(0, step * count, step))


def _interleaved(seed: int) -> str:
    """Lines of few kinds in an order of their own: no unique line to hold on to."""
    state, lines = seed, []
    for _ in range(300_000):
        state = (state * 1_103_515_245 + 12_345) % (1 << 31)
        lines.append(f"{state >> 16 & 7}\n")
    return "".join(lines)


def _many_files(where: Path, count: int) -> None:
    topic(where, {f"{ROOT}d{n % 251}/m{n}.py": f"X = {n % 97}\n" for n in range(count)})


def _many_large(where: Path) -> None:
    line = "value = compute(previous, following)  # the same on every line\n"
    names = [f"{ROOT}m{n}.py" for n in range(40)]
    topic(where, {name: f"N = {name!r}\n" + line * 50_000 for name in names})


CASES = (
    *(
        Hostile(
            f"a manifest of {name}",
            partial(_change, path=MANIFEST, text=text, before={}),
            REFUSED,
            "FT301",
        )
        for name, text in YAML.items()
    ),
    *(
        Hostile(
            f"a policy of {name}",
            partial(_in_force, path=POLICY, text=text),
            BAD_INPUT,
            "policy.yaml",
        )
        for name, text in YAML.items()
    ),
    *(
        Hostile(
            f"{name} in the {place}",
            partial(_change, path=path, text=text, before=before()),
            ORDINARY,
            "could not tell",
        )
        for name, text in SOURCES.items()
        for place, (path, before) in PLACES.items()
    ),
    Hostile(
        "a million added lines",
        partial(_diff, path=KERNEL, old=str, new=partial(_numbers, 1, 500_000)),
        ORDINARY,
        "FT125",
    ),
    Hostile(
        "two texts that interleave",
        partial(
            _diff, path=KERNEL, old=partial(_numbers, 2, 250_000), new=partial(_numbers, 3, 250_000)
        ),
        ORDINARY,
        "FT125",
    ),
    Hostile(
        "two texts without a unique line",
        partial(_diff, path=KERNEL, old=partial(_interleaved, 1), new=partial(_interleaved, 2)),
        ORDINARY,
        "FT125",
    ),
    Hostile(
        "a line of 50 megabytes",
        partial(_diff, path=KERNEL, old=str, new=lambda: "x" * 50_000_000),
        ORDINARY,
        "FT115",
    ),
    Hostile(
        "a line of 4 megabytes",
        partial(_diff, path=KERNEL, old=str, new=lambda: "#" + "x" * 4_000_000),
        ORDINARY,
        "FT115",
    ),
    Hostile(
        "four million empty lines",
        partial(_diff, path=KERNEL, old=str, new=lambda: "\n" * 4_000_000),
        ORDINARY,
        "FT125",
    ),
    Hostile("40 files of 3 megabytes", _many_large, ORDINARY, "FT125"),
    Hostile("20,000 new files", partial(_many_files, count=20_000), ORDINARY, "FT125"),
    Hostile("50,001 new files", partial(_many_files, count=50_001), BAD_INPUT, "50,000"),
    Hostile(
        "a variant table of 100,000 rows",
        partial(
            _change,
            path=TABLE,
            text=lambda: '{"variants": [' + ",".join(['{"id": "a"}'] * 100_000) + "]}",
            before=tabled(),
        ),
        ORDINARY,
        "FT309",
    ),
    Hostile(
        "a variant table of lists in each other",
        partial(_change, path=TABLE, text=lambda: "[" * DEEP, before=tabled()),
        ORDINARY,
        "FT309",
    ),
    Hostile(
        "a pyproject.toml of tables in each other",
        partial(_in_force, path="pyproject.toml", text=lambda: "a" + ".a" * DEEP + " = 1\n"),
        BAD_INPUT,
        "pyproject",
    ),
    Hostile(
        "a pyproject.toml of lists in each other",
        partial(_in_force, path="pyproject.toml", text=lambda: "a = " + "[" * DEEP),
        BAD_INPUT,
        "pyproject",
    ),
    Hostile(
        "code owners of a mebibyte",
        partial(_change, path=".github/CODEOWNERS", text=lambda: "* @a\n" * 200_000, before={}),
        ORDINARY,
        "",
    ),
)
