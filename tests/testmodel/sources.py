# SPDX-License-Identifier: Apache-2.0
"""Test modules for tests: followed from texts in memory, and written at random."""

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from fasttrack.change.imports import parse
from fasttrack.change.tree import Tree
from fasttrack.testmodel.collected import Test, tests_of
from fasttrack.testmodel.events import Trace
from fasttrack.testmodel.fixtures import Fixtures, axes_of
from fasttrack.testmodel.modules import Files
from fasttrack.testmodel.running import followed
from fasttrack.testmodel.settings import Settings
from fasttrack.testmodel.values import Module

PATH = "tests/test_it.py"


@dataclass(frozen=True)
class Followed:
    """The tests of one module."""

    files: Files
    tests: Mapping[str, Test]
    conftests: tuple[Module, ...]

    def trace(self, name: str = "test_it") -> Trace:
        """What a test meets."""
        return followed(self.tests[name], self.files, self.conftests)

    def ids(self) -> list[str]:
        """All ids, sorted."""
        return sorted(id_ for test in self.tests.values() for id_ in test.ids())


def files_of(texts: Mapping[str, str]) -> Files:
    """The modules of some texts."""
    return Files(
        Tree(lambda: {path: f"100644 blob {path}" for path in texts}),
        lambda side: parse(texts[side.oid]),
        lambda side, name: name in texts[side.oid],
        lambda path: path.startswith("tests/"),
    )


def follow(text: str, **others: str) -> Followed:
    """The tests of a module; other files by path, `__` for `/` and without their ending."""
    texts = {PATH: text} | {f"{k.replace('__', '/')}.py": v for k, v in others.items()}
    files = files_of(texts)
    conftests = (files.module("tests/conftest.py"),) if "tests/conftest.py" in texts else ()
    tests = {test.name: test for test in tests_of(files.module(PATH), Settings())}
    for test in tests.values():
        test.make_axes = lambda test: axes_of(test, Fixtures(test, conftests, files.shelves))
    return Followed(files, tests, conftests)


_words = st.text("abxyz_0189-/ é", max_size=6)
values = st.one_of(
    st.integers(-3, 40),
    st.floats(allow_nan=False, allow_infinity=False, width=16),
    st.booleans(),
    st.none(),
    _words,
    st.binary(max_size=3),
    st.sampled_from([[1], (2,), {}]),
).map(repr)
"""Values as source."""


@st.composite
def _row(draw: st.DrawFn, width: int) -> str:
    row = [draw(values) for _ in range(width)]
    if draw(st.integers(0, 4)) == 0:
        own = f", id={draw(_words.filter(bool))!r}" if draw(st.booleans()) else ""
        return f"pytest.param({', '.join(row)}{own})"
    return row[0] if width == 1 else f"({', '.join(row)})"


@st.composite
def axis(draw: st.DrawFn, names: tuple[str, ...]) -> str:
    """The arguments of one `parametrize`."""
    width = len(names)
    spelled = repr(list(names)) if width > 1 and draw(st.booleans()) else repr(",".join(names))
    if width == 1 and draw(st.integers(0, 3)) == 0:
        start, step = draw(st.integers(0, 3)), draw(st.integers(1, 3))
        spans = [f"range({start}, 9, {step})", f"[n * {step} for n in range(4) if n != {start}]"]
        return f"{spelled}, {draw(st.sampled_from(spans))}"
    if width == 2 and draw(st.integers(0, 3)) == 0:
        left, right = (draw(st.lists(values, min_size=1, max_size=3)) for _ in names)
        return f"{spelled}, itertools.product([{', '.join(left)}], [{', '.join(right)}])"
    rows = draw(st.lists(_row(width), min_size=1, max_size=4))
    ids = ""
    if draw(st.integers(0, 3)) == 0:
        given = draw(st.lists(_words.filter(bool), min_size=len(rows), max_size=len(rows)))
        ids = f", ids={given!r}"
    return f"{spelled}, [{', '.join(rows)}]{ids}"


@st.composite
def module(draw: st.DrawFn) -> str:
    """A test module with parametrisations of all kinds, each of which pytest can collect."""
    pieces = ["import itertools\n\nimport pytest\n"]
    fixed = draw(st.lists(values, min_size=1, max_size=3))
    pieces.append(
        f"@pytest.fixture(params=[{', '.join(fixed)}])\ndef f(request):\n    return request.param\n"
    )
    for number in range(draw(st.integers(3, 6))):
        groups = draw(st.sampled_from([(), (("a",),), (("a", "b"),), (("a",), ("b",))]))
        with_fixture, in_class = draw(st.booleans()), draw(st.booleans())
        marks = [f"@pytest.mark.parametrize({draw(axis(names))})" for names in groups]
        arguments = [name for names in groups for name in names] + ["f"] * with_fixture
        if in_class:
            over = draw(st.integers(0, len(marks)))
            inner = "".join(f"    {mark}\n" for mark in marks[over:])
            given = ", ".join(["self", *arguments])
            body = f"class TestIn{number}:\n{inner}    def test_it({given}):\n        pass\n"
            pieces.append("".join(f"{mark}\n" for mark in marks[:over]) + body)
        else:
            head = "".join(f"{mark}\n" for mark in marks)
            pieces.append(f"{head}def test_{number}({', '.join(arguments)}):\n    pass\n")
    return "\n\n".join(pieces)
