# SPDX-License-Identifier: Apache-2.0
"""The parts of the look through a text, before anything is parsed."""

import pytest

from fasttrack.meaning.around import Around
from fasttrack.meaning.decorated import head_at, sketched
from fasttrack.meaning.heads import Parameters, parameters_in
from fasttrack.meaning.imports import imports_in
from fasttrack.meaning.lines import Lines, masked
from fasttrack.meaning.sketch import Look
from fasttrack.meaning.texts import KEPT_CHARACTERS, Text, Texts

from .test_names import ACT, reached

OPS = "from host.shared import ops\n\n\n"
REGISTERED = """\
from host.shared.layers import REGISTRY
from host.fast.own import Info


class Step:
    pass


@REGISTRY.register(Step, info=Info)
class Model(Step):
    def run(self):
        return REGISTRY
"""


@pytest.mark.parametrize(
    ("code", "reaches"),
    [
        ("def f():\n    x = []\n    x.append(1)\n", []),
        ("def f(**more):\n    more.pop('a', None)\n\n\nf(a=ops)\n", []),
        ("def f():\n    x = [] if ops else ops.ORDER\n    x.append(1)\n", ["ORDER"]),
        ("def f():\n    x, y = ops.ORDER, 1\n    x.append(y)\n", ["ORDER"]),
        (
            "def f():\n    (\n        x,\n        y,\n    ) = ops.ORDER, 1\n    x.append(y)\n",
            ["ORDER"],
        ),
        ("def f(x=[]):\n    x.append(1)\n\n\nf(ops.ORDER)\n", ["ORDER"]),
        ("def f(x=None):\n    x.LIMIT = 1\n\n\nf(x=ops)\n", ["LIMIT"]),
        ("def f():\n    for x in [ops.ORDER]:\n        x.append(1)\n", ["ORDER"]),
        ("def f():\n    x: dict[\n        str, int\n    ] = {}\n    return x\n", []),
    ],
)
def test_a_change_of_what_the_function_has_made_is_none(code: str, reaches: list[str]) -> None:
    assert reached({ACT: OPS + code}, {}) == [f"host.shared.ops.{name}" for name in reaches]


@pytest.mark.parametrize(
    "code",
    [
        "def f(x: dict[str, int], y=None):\n    y.LIMIT = 1\n\n\nf({}, ops)\n",
        "def f(x=(1, 2), *rest):\n    rest[0].LIMIT = 1\n\n\nf(1, ops)\n",
        "def f(x=1, **more):\n    more['y'].LIMIT = 1\n\n\nf(y=ops)\n",
        "class A:\n    def f(self, y):\n        y.LIMIT = 1\n\n\nA.f(A(), ops)\n",
    ],
)
def test_an_argument_reaches_its_parameter(code: str) -> None:
    assert reached({ACT: OPS + code}, {}) == ["host.shared.ops.LIMIT"]


@pytest.mark.parametrize(
    "code",
    [
        "def f(x=(1, ops)):\n    x[1].LIMIT = 1\n",
        "def f(x: int = 1, y=ops):\n    y.LIMIT = 1\n",
        "def f(\n    x: int = 1,\n    y: object = ops,\n) -> None:\n    y.LIMIT = 1\n",
        "def f(x={'a': ops}):\n    x['a'].LIMIT = 1\n",
        "def f(x='a, b', y=ops):\n    y.LIMIT = 1\n",
        "class P:\n    def __init_subclass__(cls, where):\n        where.LIMIT = 1\n\n\n"
        "class A(\n    P,\n    where=ops,\n):\n    pass\n",
    ],
)
def test_a_header_hands_on_what_its_defaults_are(code: str) -> None:
    assert "host.shared.ops.LIMIT" in reached({ACT: OPS + code}, {})


@pytest.mark.parametrize(
    "code",
    [
        "k = 'a'\nx = dict(\n    {\n        k: ops}, b=3)\nx[k].LIMIT = 1\n",
        "x = {}\nfor k in [ops]:\n    if isinstance(k, type(ops)): x = k\nx.LIMIT = 1\n",
        "x: object = ops\nx.LIMIT = 1\n",
        "try: x = [ops][0]\nfinally: pass\nx.LIMIT = 1\n",
        "x = print if isinstance(1, int) else ops\nx.LIMIT = 1\n",
    ],
)
def test_what_looks_like_a_type_and_is_none_is_followed(code: str) -> None:
    assert "host.shared.ops.LIMIT" in reached({ACT: OPS + code}, {})


@pytest.mark.parametrize(
    ("body", "whole"),
    [
        ("    A = 1\n    B = 'b'\n\n\nx = 1\n", False),
        ('    """Ways."""\n\n    A = enum.auto()\n    B = -2\n', False),
        ("    A = ops\n", True),
        ("    A = (1, 2)\n", True),
        ("    A = 1\n\n    def run(self):\n        return ops\n", True),
        ("    A = 1\n\n\nclass Other(enum.Enum):\n    B = ops\n", True),
    ],
)
def test_only_an_enumeration_of_numbers_and_texts_is_no_reason_to_read_a_file_whole(
    body: str, whole: bool
) -> None:
    nothing = Around(
        lambda *_: (), lambda _: {"ops": 0}, lambda _: frozenset(), lambda _: frozenset()
    )
    code = f"import enum\n{OPS}class Way(enum.Enum):\n{body}"
    assert Look(Text(code), nothing).whole is whole


def test_what_is_known_of_a_text_is_dropped_when_too_much_is_kept() -> None:
    texts = Texts()
    first = texts.of("x = 1\n")
    assert texts.of("x = 1\n") is first
    texts.of("#" * (KEPT_CHARACTERS + 1))
    texts.of("y = 1\n")
    assert texts.of("x = 1\n") is not first


@pytest.mark.parametrize(
    ("head", "parameters"),
    [
        ("def f():", Parameters((), 0, "", "")),
        ("def f(self, a, b=(1, 2)): return g(a, b)", Parameters(("a", "b"), 2, "", "")),
        ("def f(a: dict[str, int], /, b):", Parameters(("a", "b"), 2, "", "")),
        ("def f(a, *, b):", Parameters(("a", "b"), 1, "", "")),
        ("def f(a, *b, c=1, **d):", Parameters(("a", "b", "c", "d"), 1, "b", "d")),
    ],
)
def test_parameters_are_told_from_the_text_of_a_head(head: str, parameters: Parameters) -> None:
    assert parameters_in(head) == parameters


def _sketched(source: str) -> str | None:
    lines = Lines(masked(source))
    row = next(number for number, row in enumerate(lines.rows) if row.startswith("@"))
    head = head_at(lines, row)
    return None if head is None else sketched(source, lines, [head], imports_in(lines.text))


def test_of_a_registered_class_only_the_decorator_is_read() -> None:
    kept = _sketched(REGISTERED)
    assert kept is not None
    assert {number: row for number, row in enumerate(kept.split("\n")) if row} == {
        0: "from host.shared.layers import REGISTRY as REGISTRY",
        1: "from host.fast.own import Info as Info",
        8: "@REGISTRY.register(Step, info=Info)",
        9: "class Model: pass",
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("class Step:\n    pass\n", "Step = REGISTRY\n"),
        ("from host.fast", "if REGISTRY:\n    from host.fast"),
        ("class Step:", "for Info in ():\n    pass\n\n\nclass Step:"),
        ("register(Step", "register(Step()"),
        ("register(Step", "register(lambda: Step"),
        ("class Step:\n    pass\n", "Step, = REGISTRY\n"),
        ("class Step:\n    pass\n", "\n"),
    ],
)
def test_a_decorator_whose_names_may_be_anything_is_read_with_all_around_it(
    old: str, new: str
) -> None:
    assert old in REGISTERED
    assert _sketched(REGISTERED.replace(old, new)) is None
