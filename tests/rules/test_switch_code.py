# SPDX-License-Identifier: Apache-2.0
"""What is read of a switch in code: defaults by any spelling, and what a constant cuts off."""

import ast
import textwrap
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.rules.isolation.declared_defaults import UNDECIDED, Scope, declared
from fasttrack.rules.isolation.handlers import blankets
from fasttrack.rules.isolation.reachable import constants, reachable, truth
from fasttrack.rules.isolation.switched import Code, Words, _functions

OTHER = "DEFAULT = 'auto'\nclass Mode:\n    FAST = 'k3'\n    SLOW = 'auto'\n"


def scope(source: str) -> Scope:
    return Scope(ast.parse(source), lambda node: node.module or "")


def defaults(source: str) -> dict[str, str]:
    tree = ast.parse(textwrap.dedent(source))
    names: Callable[[str], Scope | None] = {"other": scope(OTHER)}.get
    found = declared(tree, "decode-backend", scope(textwrap.dedent(source)), names)
    return {one.place: one.value for one in found}


FORMS = {
    "class A:\n    decode_backend: str = %s": "A.decode_backend",
    "class A:\n    decode_backend = %s": "A.decode_backend",
    "class A:\n    decode_backend: str = Field(%s, alias='x')": "A.decode_backend",
    "class A:\n    decode_backend: str = p.Field(description='', default=%s)": "A.decode_backend",
    "class A:\n    decode_backend: str = field(default_factory=lambda: %s)": "A.decode_backend",
    "def f(decode_backend=%s): pass": "f(decode_backend)",
    "def f(a, /, b, decode_backend=%s, c=1): pass": "f(decode_backend)",
    "class A:\n    async def f(self, *, decode_backend=%s): pass": "A.f(decode_backend)",
    "p.add_argument('-b', '--decode-backend', default=%s)": "add_argument --decode_backend",
    "@click.option('--decode-backend', default=%s)\ndef f(b): pass": "f.option --decode_backend",
    "def f(b: str = typer.Option(%s, '--decode-backend')): pass": "f.Option --decode_backend",
    "p.set_defaults(decode_backend=%s)": "set_defaults decode_backend",
    "x = os.environ.get('ENGINE_DECODE_BACKEND', %s)": "get decode_backend",
    "x = os.getenv('DECODE_BACKEND', default=%s)": "getenv decode_backend",
    "x = getattr(config, 'decode_backend', %s)": "getattr decode_backend",
    "x = config.pop('decode_backend', %s)": "pop decode_backend",
    "x = os.environ.get('ENGINE_DECODE_BACKEND') or (%s)": "or",
    "DECODE_BACKEND = %s": "DECODE_BACKEND",
    "DEFAULT_DECODE_BACKEND: str = %s": "DEFAULT_DECODE_BACKEND",
}
VALUES = {
    "'auto'": "auto",
    "None": "None",
    "str('auto')": "auto",
    "'auto' if x else 'auto'": "auto",
    "'auto' if x else 'k3'": UNDECIDED,
    "pick()": UNDECIDED,
    "DEFAULT": "auto",
    "Mode.SLOW.value": "auto",
    "Mode.FAST": "k3",
    "Mode('k3')": "k3",
    "Elsewhere.AUTO": UNDECIDED,
    "unknown": UNDECIDED,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", VALUES)
def test_a_default_is_read_in_every_form_and_through_every_carrier(form: str, value: str) -> None:
    source = "from other import DEFAULT, Mode\n" + form % value
    assert defaults(source) == {FORMS[form]: VALUES[value]}


@pytest.mark.parametrize(
    "source",
    [
        "def f(other_decode='k3'): pass",
        "x = config.get('backend', 'k3')",
        "x = config['decode_backend']",
        "p.add_argument('--decode', default='k3')",
        "if decode_backend == 'k3': pass",
        "run(decode_backend='k3')",
        "def f(decode_backend): decode_backend = 'k3'",
    ],
)
def test_what_sets_no_default_of_the_option_is_none(source: str) -> None:
    assert defaults(source) == {}


def test_a_constant_that_is_bound_twice_or_by_itself_can_not_be_told() -> None:
    for source in ("A = 'auto'\nA = 'k3'\n", "A = B\nB = A\n", "from other import A\n"):
        assert defaults(source + "def f(decode_backend=A): pass") == {
            "f(decode_backend)": UNDECIDED
        }


def test_a_chain_of_names_is_followed_so_far_and_no_further() -> None:
    chain = "".join(f"A{n} = A{n + 1}\n" for n in range(4)) + "A4 = 'auto'\n"
    assert defaults(chain + "DECODE_BACKEND = A0")["DECODE_BACKEND"] == "auto"
    chain = "".join(f"A{n} = A{n + 1}\n" for n in range(5000)) + "A5000 = 'auto'\n"
    assert defaults(chain + "DECODE_BACKEND = A0")["DECODE_BACKEND"] == UNDECIDED


_TESTS = st.recursive(
    st.sampled_from(
        ["True", "False", "1", "0", "'x'", "None", "x", "YES", "NO", "1 == 1", "1 == 2"]
    ),
    lambda inner: st.one_of(
        inner.map("(not {})".format),
        st.tuples(inner, inner).map("({0[0]} or {0[1]})".format),
        st.tuples(inner, inner).map("({0[0]} and {0[1]})".format),
    ),
    max_leaves=8,
)


@given(_TESTS)
def test_a_condition_is_constant_only_if_it_comes_out_the_same_for_every_value(text: str) -> None:
    test = ast.parse(text, mode="eval").body
    answer = truth(test, {"YES": True, "NO": False})
    outcomes = {bool(eval(text, {"YES": True, "NO": False, "x": x})) for x in (0, 1)}
    assert answer is None or outcomes == {answer}


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("a\nreturn b\nc", "ab"),
        ("if x:\n    return a\nelse:\n    raise b\nc", "xab"),
        ("if x:\n    return a\nc", "xac"),
        ("if False:\n    a\nelse:\n    b\nc", "bc"),
        ("if not False:\n    return a\nc", "a"),
        ("if ON:\n    return a\nc", "a"),
        ("while True:\n    a\n    break\n    b\nc", "ac"),
        ("for i in x:\n    continue\n    a\nc", "ixc"),
        ("with x:\n    a\nc", "xac"),
        ("try:\n    return a\nexcept E:\n    b\nc", "aEbc"),
        ("return a if True else b", "a"),
        ("d = {**a, 'k': b}\nf(*a, k=b)", "dabfab"),
        ("match x:\n    case 1:\n        return a\n        b\nc", "xac"),
    ],
)
def test_what_can_not_run_is_cut_off(body: str, names: str) -> None:
    source = "ON = True\ndef f():\n" + textwrap.indent(body, "    ")
    tree = ast.parse(source)
    nodes = reachable(tree.body[1].body, constants(tree))  # type: ignore[attr-defined]
    found = sorted(node.id for node in nodes if isinstance(node, ast.Name))
    assert found == sorted(names)


HOSTILE = {
    "conditions": "if " + "not " * 900 + "x: pass",
    "arms": "x = " + " if y else ".join(["1"] * 900),
    "attributes": "try:\n    x" + ".y" * 900 + "()\nexcept Exception: pass",
    "calls": "try:\n    x" + "()" * 900 + "\nexcept Exception: pass",
    "branches": "if a: pass\n" + "elif b: pass\n" * 900,
    "defaults": "def f(decode_backend=" + "a.value" + ".value" * 900 + "): pass",
    "nested functions": "".join("  " * n + "def f():\n" for n in range(90)) + "  " * 90 + "pass",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_deep_sources_are_read_without_a_crash(name: str) -> None:
    tree = ast.parse("def g():\n" + textwrap.indent(HOSTILE[name], "    "))
    list(declared(tree, "decode_backend", scope(""), lambda _: None))
    list(blankets(tree, lambda caught: caught is None, set()))
    code = Code(dict(_functions(tree)), constants(tree))
    words = Words("decode_backend", "k3", "auto")
    code.fallbacks(words)
    for function in code.functions:
        code.chooses(words, function)
