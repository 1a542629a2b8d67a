# SPDX-License-Identifier: Apache-2.0
"""What a file depends on, against a second reading: which files CPython loads with it."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.errors import FactUnavailable
from fasttrack.evidence.closure import Closure

FILES = {
    "pkg/__init__.py": "",
    "pkg/a/__init__.py": "from . import names\n",
    "pkg/a/names.py": "NAME = 1\n",
    "pkg/a/kernel.py": "from ..b import helper\nfrom .names import NAME\n",
    "pkg/a/lazy.py": "def f():\n    import pkg.b.late\n",
    "pkg/a/typed.py": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pkg.b import late\n"
    ),
    "pkg/b/__init__.py": "",
    "pkg/b/helper.py": "import pkg.b.deep as d\n",
    "pkg/b/deep.py": "from pkg.a import *\n",
    "pkg/b/late.py": "",
    "pkg/b/alone.py": "",
}


def closure(files: dict[str, str]) -> Closure:
    return Closure(files, files.__getitem__)


@pytest.mark.parametrize(
    ("start", "reached"),
    [
        (
            "pkg/a/kernel.py",
            {
                "pkg/__init__.py",
                "pkg/a/__init__.py",
                "pkg/a/kernel.py",
                "pkg/a/names.py",
                "pkg/b/__init__.py",
                "pkg/b/deep.py",
                "pkg/b/helper.py",
            },
        ),
        (
            "pkg/a/lazy.py",
            {
                "pkg/__init__.py",
                "pkg/a/__init__.py",
                "pkg/a/lazy.py",
                "pkg/a/names.py",
                "pkg/b/__init__.py",
                "pkg/b/late.py",
            },
        ),
        ("pkg/b/alone.py", {"pkg/__init__.py", "pkg/b/__init__.py", "pkg/b/alone.py"}),
        (
            "pkg/a/typed.py",
            {"pkg/__init__.py", "pkg/a/__init__.py", "pkg/a/names.py", "pkg/a/typed.py"},
        ),
    ],
)
def test_imports_are_followed_through_packages_and_functions(start: str, reached: set[str]) -> None:
    assert closure(FILES).of([start]) == reached


@given(
    st.lists(
        st.sampled_from(
            ["import pkg.{}", "from pkg import {}", "from . import {}", "from .{} import X"]
        ),
        min_size=4,
        max_size=4,
    ),
    st.lists(st.sampled_from("abcd"), min_size=4, max_size=4),
)
def test_every_file_that_python_loads_is_in_the_closure(
    forms: list[str], targets: list[str]
) -> None:
    files = {"pkg/__init__.py": "X = 0\n"}
    for name, form, target in zip("abcd", forms, targets, strict=True):
        # An import of itself or of a half-loaded module may fail; what was loaded still counts.
        files[f"pkg/{name}.py"] = (
            f"X = 1\ntry:\n    {form.format(target)}\nexcept ImportError:\n    pass\n"
        )
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            (Path(folder) / path).parent.mkdir(exist_ok=True)
            (Path(folder) / path).write_text(text)
        program = (
            "import pkg.a, sys, os\n"
            "for m in list(sys.modules.values()):\n"
            "    f = getattr(m, '__file__', None) or ''\n"
            "    if os.sep + 'pkg' + os.sep in f: print(os.path.relpath(f, os.getcwd()))\n"
        )
        loaded = subprocess.run(
            [sys.executable, "-S", "-B", "-c", program],
            cwd=folder, capture_output=True, text=True, check=True,
        ).stdout.split()  # fmt: skip
    assert set(loaded) <= closure(files).of(["pkg/a.py"])


def test_included_headers_are_followed_by_folder_and_by_name() -> None:
    files = {
        "k/gemm.cu": '#include "common/tile.cuh"\n  #  include "../inc/types.h"\n#include <a.h>\n',
        "k/common/tile.cuh": '#include "math.cuh"\n',
        "k/common/math.cuh": "",
        "inc/types.h": "",
        "k/other.cuh": "",
    }
    assert closure(files).of(["k/gemm.cu"]) == set(files) - {"k/other.cuh"}


def test_a_file_whose_imports_can_not_be_told_depends_on_everything() -> None:
    files = FILES | {"pkg/a/broken.py": "def (:\n"}
    assert closure(files).of(["pkg/a/broken.py"]) == set(files)

    def unreadable(path: str) -> str:
        if path == "pkg/b/alone.py":
            raise FactUnavailable("too large")
        return FILES[path]

    assert Closure(FILES, unreadable).of(["pkg/b/alone.py"]) == set(FILES)


def test_a_root_below_the_import_folder_is_found_by_the_end_of_its_path() -> None:
    files = {"python/eng/m/a.py": "from eng.m.b import f\n", "python/eng/m/b.py": ""}
    assert closure(files).of(["python/eng/m/a.py"]) == set(files)


@pytest.mark.parametrize(
    ("more", "reached"),
    [
        # Nothing of that name at the top: whoever has it in a package may be meant.
        ({}, True),
        ({"tests/__init__.py": ""}, True),
        # Where `tests` may be on the search path, it has a module of its own to lend.
        ({"eng/b.py": ""}, True),
        ({"eng/b.py": "", "tests/__init__.py": ""}, False),
        ({"eng/b/__init__.py": "", "tests/__init__.py": ""}, False),
    ],
)
def test_a_namesake_in_a_package_is_no_dependency_of_who_names_a_module_at_the_top(
    more: dict[str, str], reached: bool
) -> None:
    files = {"tests/test_b.py": "import eng.b\n", "tests/eng/b.py": ""}
    found = Closure(files, files.__getitem__, files | more).of(["tests/test_b.py"])
    assert ("tests/eng/b.py" in found) is reached


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("k/a.cu", "#include <common/tile.cuh>\n"),
        ("k/a.hip", '#include "common/tile.cuh"\n'),
        ("k/a.cu", '%:include "common/tile.cuh"\n'),
        ("k/a.cu", '/* one\n two */ #/* three */include/* four */"common/tile.cuh"\n'),
        ("k/a.cu", '#inc\\\nlude "common/tile.cuh"\n'),
        ("k/a.cu", '#include "deep/../common/tile.cuh"\n'),
        ("k/a.cu", '#include "../../../common/tile.cuh"\n'),
        ("k/a.cu", 'auto open = "/*";\n#include "common/tile.cuh"\nauto close = "*/";\n'),
        ("k/a.cu", "#include TILE\n"),
        ("k/a.cu", '#/*\n*/include "common/tile.cuh"\n'),
        ("k/a.pyx", "from k.common cimport tile\n"),
        ("k/a.py", 'SOURCE = "tile.cuh"\n'),
        ("k/a.py", 'SOURCE = HERE / "common/tile.cuh"\n'),
    ],
)
def test_a_header_is_reached_in_whatever_form_it_is_named(path: str, text: str) -> None:
    files = {path: text, "k/common/tile.cuh": "", "k/common/tile.pxd": ""}
    assert "k/common/tile.cuh" in closure(files).of([path])


@pytest.mark.parametrize(
    "init",
    [
        '__all__ = ["late"]\n',
        '_LAZY = {"attend": ".late"}\n',
        '_LAZY = {"attend": "pkg.late"}\n',
        "from importlib import import_module\nimport_module('.late', __package__)\n",
    ],
)
def test_a_module_that_a_package_loads_when_asked_is_reached(init: str) -> None:
    files = {"pkg/__init__.py": init, "pkg/late.py": "", "a.py": "from pkg import *\n"}
    assert "pkg/late.py" in closure(files).of(["a.py"])


def test_a_word_in_a_string_is_no_dependency() -> None:
    files = {"k/a.py": 'NAME = "late"\nLOG = "k.other"\n', "k/late.py": "", "k/b.cu": "#define A\n"}
    assert closure(files).of(["k/a.py"]) == {"k/a.py"}
    assert closure(files).of(["k/b.cu"]) == {"k/b.cu"}


def test_directives_are_found_in_time_that_grows_with_the_text() -> None:
    hostile = [
        "#/**/" * 200_000,
        "/*\n" * 300_000,
        "\n" * 1_000_000,
        "*/ " * 300_000,
        "#/*" * 300_000,
    ]
    for text in hostile:
        files = {"k/a.cu": text + '\n#include "b.h"\n', "k/b.h": ""}
        assert closure(files).of(["k/a.cu"]) == set(files)
