# SPDX-License-Identifier: Apache-2.0
"""What an expression of constants stands for is what Python makes of it, or is not told."""

import ast
import itertools

from hypothesis import example, given, settings
from hypothesis import strategies as st

from fasttrack.testmodel.values import Opaque, is_known, words

from .sources import PATH, files_of

_NUMBERS = st.one_of(
    st.integers(-9, 99).map(repr),
    st.sampled_from(["0.5", "1e-3", "2.0", "True", "False", "None"]),
)
_ATOMS = st.one_of(
    _NUMBERS,
    st.text("abx ", max_size=3).map(repr),
    st.sampled_from(["[]", "()", "{}", "range(4)", "range(2, 9, 3)", "N", "TABLE", "itertools"]),
)


def _joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = "+ - * / // % | & ^ == != < <= > >= and or in".split()  # noqa: SIM905
    pair = st.tuples(inner, st.sampled_from(binary), inner)
    items = st.lists(inner, max_size=3).map(", ".join)
    return st.one_of(
        pair.map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"),
        st.tuples(st.sampled_from(["-", "not ", "+", "~"]), inner).map(lambda p: f"({p[0]}{p[1]})"),
        items.map(lambda text: f"[{text}]"),
        items.map(lambda text: f"({text},)" if text else "()"),
        st.tuples(inner, inner, inner).map(lambda p: f"({p[0]} if {p[1]} else {p[2]})"),
        st.tuples(inner, inner).map(lambda p: f"{p[0]}[{p[1]}]"),
        st.tuples(inner, inner).map(lambda p: f"[x for x in {p[0]} if {p[1]}]"),
        inner.map(lambda text: f"{{'k': {text}}}['k']"),
        st.tuples(st.sampled_from(["len", "sorted", "list", "tuple", "max", "min", "sum", "abs",
                                   "str", "int", "float", "bool"]), inner).map(
            lambda p: f"{p[0]}({p[1]})"
        ),
    )  # fmt: skip


_HEAD = "import itertools\n\nN = 7\nTABLE = {'a': 1e-3, 'b': [1, 2]}\n"


def _folded(text: str) -> object:
    found = files_of({PATH: f"{_HEAD}VALUE = {text}\n"}).module(PATH)
    return found.names.get("VALUE", Opaque("the module ended before"))


@settings(max_examples=300, deadline=None)
@given(st.recursive(_ATOMS, _joined, max_leaves=6))
@example("(9 ** 9 ** 9)")
@example("max([[1, 2], [3]], key=len)")
def test_what_is_told_of_constants_is_what_python_computes(text: str) -> None:
    value = _folded(text)
    if not is_known(value):
        return  # not told, which is never wrong
    space = {"itertools": itertools, "N": 7, "TABLE": {"a": 1e-3, "b": [1, 2]}}
    expected = eval(compile(ast.parse(text, mode="eval"), "text", "eval"), space)
    assert words(value) == words(expected), text


def test_most_constants_are_told() -> None:
    told = ["1 + 2 * 3", "[n * 2 for n in range(4)]", "TABLE['a'] * 10", "N if N > 3 else 0",
            "{'k': 1e-3}['k']", "sorted([3, 1])", "tuple(range(3))", "-N", "'a' * 3", "N in [7]",
            "list(itertools.product([1, 2], 'ab'))", "len(TABLE)", "max(3, N)"]  # fmt: skip
    assert [text for text in told if not is_known(_folded(text))] == []


def test_what_python_would_search_one_by_one_is_told_at_once() -> None:
    assert _folded("[x for x in range(10) if 1.5 in range(10 ** 11)]") == []
    assert _folded("2.0 in range(10 ** 11)") is True
