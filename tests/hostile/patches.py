# SPDX-License-Identifier: Apache-2.0
"""Hostile patch files: enormous, binary, climbing out, or applying elsewhere."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.engine import KERNEL
from tests.hostile.case import BAD_INPUT, ORDINARY, Arguments, Hostile, topic

NEW = "diff --git a/{0} b/{0}\nnew file mode {1}\n--- /dev/null\n+++ b/{0}\n@@ -0,0 +1,{2} @@\n"


def _patch(where: Path, text: Callable[[], bytes | str]) -> Arguments:
    topic(where, {KERNEL: "BLOCK = 64\n"})
    content = text()
    patch = where.parent / "change.patch"
    patch.write_bytes(content if isinstance(content, bytes) else content.encode())
    return ("--patch", patch, "--onto", "main")


def _new(path: str, lines: int = 1, mode: str = "100644") -> str:
    return NEW.format(path, mode, lines) + "+x = 1\n" * lines


def _sparse(where: Path) -> Arguments:
    arguments = _patch(where, lambda: "")
    with (where.parent / "change.patch").open("r+b") as file:
        file.truncate(1 << 40)
    return arguments


CASES = (
    Hostile(
        "a patch of 100 megabytes",
        partial(_patch, text=lambda: _new("engine/foo/n.py", 14_000_000)),
        BAD_INPUT,
        "16,777,216",
    ),
    Hostile("a patch of a terabyte of holes", _sparse, BAD_INPUT, "16,777,216"),
    Hostile(
        "a patch of 16 megabytes",
        partial(_patch, text=lambda: _new("engine/foo/n.py", 2_350_000)),
        ORDINARY,
        "FT125",
    ),
    Hostile(
        "a patch of 60,000 files",
        partial(_patch, text=lambda: "".join(_new(f"engine/foo/n{n}.py") for n in range(60_000))),
        BAD_INPUT,
        "want",
    ),
    Hostile(
        "a patch of 100,000 hunks",
        partial(
            _patch,
            text=lambda: (
                f"diff --git a/{KERNEL} b/{KERNEL}\n--- a/{KERNEL}\n+++ b/{KERNEL}\n"
                + "@@ -1 +1 @@\n-BLOCK = 32\n+BLOCK = 64\n" * 100_000
            ),
        ),
        BAD_INPUT,
        "want",
    ),
    Hostile(
        "a patch that is binary",
        partial(
            _patch,
            text=lambda: (
                f"diff --git a/{KERNEL} b/{KERNEL}\nindex 1..2\n"
                "GIT binary patch\nliteral 1\nIcmZ\n\n"
            ),
        ),
        BAD_INPUT,
        "want",
    ),
    Hostile(
        "a patch of NUL bytes", partial(_patch, text=lambda: bytes(16_000_000)), BAD_INPUT, "want"
    ),
    Hostile(
        "a patch of one endless line",
        partial(
            _patch,
            text=lambda: NEW.format("engine/foo/n.py", "100644", 1) + "+" + "x" * 16_000_000 + "\n",
        ),
        ORDINARY,
        "FT115",
    ),
    Hostile(
        "a patch that climbs out",
        partial(_patch, text=lambda: _new("../../escaped.py")),
        BAD_INPUT,
        "want",
    ),
    Hostile(
        "a patch of `.git`",
        partial(_patch, text=lambda: _new(".git/hooks/pre-commit", mode="100755")),
        BAD_INPUT,
        "want",
    ),
    Hostile(
        "a patch of a link",
        partial(
            _patch,
            text=lambda: (
                NEW.format("engine/foo/l", "120000", 1)
                + "+/dev/zero\n\\ No newline at end of file\n"
            ),
        ),
        ORDINARY,
        "FT104",
    ),
    Hostile(
        "a patch with an absurd line number",
        partial(
            _patch, text=lambda: _new("engine/foo/n.py").replace("+1,1", "+1,99999999999999999999")
        ),
        BAD_INPUT,
        "want",
    ),
    Hostile(
        "a patch that is a folder",
        lambda where: _patch(where, str) and ("--patch", where, "--onto", "main"),
        BAD_INPUT,
        "directory",
    ),
    Hostile(
        "a patch that is a device",
        lambda where: _patch(where, str) and ("--patch", "/dev/zero", "--onto", "main"),
        BAD_INPUT,
        "16,777,216",
    ),
)
