# SPDX-License-Identifier: Apache-2.0
import ast
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml

from fasttrack.change import imports as imports_module
from fasttrack.change.imports import imports_of
from fasttrack.errors import FactUnavailable

CASES = yaml.safe_load((Path(__file__).parent / "cases" / "imports.yaml").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["why"] for case in CASES])
def test_imports(case: dict[str, Any]) -> None:
    found = [
        [
            one.module,
            one.level,
            list(one.names),
            one.line,
            "t" * one.type_checking + "f" * one.inside_function,
        ]
        for one in imports_of(case["source"])
    ]
    assert found == case["imports"]


def test_statements_of_the_standard_library_are_all_seen() -> None:
    folder = Path(sysconfig.get_paths()["stdlib"])
    for name in ("os.py", "typing.py", "asyncio/__init__.py", "unittest/mock.py", "pathlib.py"):
        source = (folder / name).read_text("utf-8")
        expected = sum(
            len(node.names) if isinstance(node, ast.Import) else 1
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Import | ast.ImportFrom)
        )
        found = imports_of(source)
        calls = source.count("__import__(") + source.count("import_module(")
        assert expected <= len(found) <= expected + calls, name


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("(" * 100_000, id="open brackets"),
        pytest.param("(" * 150 + ")" * 150, id="brackets"),
        pytest.param("-" * 100_000 + "1", id="signs"),
        pytest.param("not " * 50_000 + "x", id="words"),
        pytest.param("a" + ".a" * 100_000, id="attributes"),
        pytest.param("a" + "()" * 100_000, id="calls"),
        pytest.param("a" + "[0]" * 100_000, id="subscripts"),
        pytest.param("1" + "+1" * 100_000, id="sums"),
        pytest.param("lambda:" * 50_000 + "1", id="lambdas"),
        pytest.param("if 1:\n" + "elif 1: pass\n" * 1, id="no body"),
        pytest.param("if 1: pass\n" + "elif 1: pass\n" * 50_000, id="elif"),
        pytest.param("".join(" " * n + "if 1:\n" for n in range(120)) + " " * 120 + "x", id="if"),
        pytest.param("f'" + "{f'" * 60_000, id="nested f-strings"),
        pytest.param("x = " + "[" * 199 + "]" * 199, id="lists"),
        pytest.param("x\0y", id="NUL"),
        pytest.param("x = '\ud800'", id="lone surrogate"),
        pytest.param("9" * 100_000, id="enormous number"),
        pytest.param("import", id="half a statement"),
        pytest.param("from .. import", id="half a from"),
        pytest.param("\tx\n        y", id="mixed indentation"),
        pytest.param("# coding: nothing\n\xff = (", id="unknown coding"),
        pytest.param("print 'python 2'", id="Python 2"),
    ],
)
def test_hostile_source_is_a_missing_fact_or_read(source: str) -> None:
    try:
        found = imports_of(source)
    except FactUnavailable:
        return
    assert found == ()


def test_source_that_does_not_parse_names_the_line() -> None:
    with pytest.raises(FactUnavailable, match=r"not Python: .*line 2"):
        imports_of("import a\nimport\n")


def test_deep_but_parseable_source_is_walked_without_recursion() -> None:
    depth = 90
    source = "".join(" " * n + "if x:\n" for n in range(depth)) + " " * depth + "import deep\n"
    source += "x = " + "-" * 600 + '__import__("far")\n'
    assert [found.module for found in imports_of(source)] == ["deep", "far"]


def test_the_size_of_source_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports_module, "SOURCE_LIMIT", 9)
    assert imports_of("import a\n")[0].module == "a"
    with pytest.raises(FactUnavailable, match="10 characters; at most 9"):
        imports_of("import a\n\n")


def test_the_words_of_source_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports_module, "WORDS_LIMIT", 5)
    assert len(imports_of("import a; import b")) == 2
    with pytest.raises(FactUnavailable, match="6 words and signs; at most 5"):
        imports_of("import a; import b;")


def test_what_python_warns_about_is_read_in_silence() -> None:
    assert imports_of('x = "\\d" is 1\nimport a\n')[0].module == "a"


def test_a_text_is_parsed_once_and_one_with_very_many_imports_is_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed: list[str] = []
    parse = imports_module.parse

    def counted(source: str) -> ast.Module:
        parsed.append(source)
        return parse(source)

    monkeypatch.setattr(imports_module, "parse", counted)
    monkeypatch.setattr(imports_module, "_known", {})
    few, many = "import few", "import " + ", ".join(f"m{n}" for n in range(65))
    for source in (few, few, many, many):
        assert imports_of(source) == imports_of(source)
    assert parsed == [few, many, many, many, many]

    monkeypatch.setattr(imports_module, "_KNOWN_TEXTS", 1)
    for _ in range(2):
        assert imports_of("import other")[0].module == "other"
    assert parsed[5:] == ["import other"] * 2
