# SPDX-License-Identifier: Apache-2.0
"""What following a test meets: the cases of `following.yaml`, hostile texts, and bounds."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.errors import FactUnavailable
from fasttrack.testmodel.tolerance import loosened, numbers

from .sources import PATH, files_of, follow

CASES = yaml.safe_load(
    (Path(__file__).parent.parent / "cases" / "following.yaml").read_text(encoding="utf-8")
)


def _met(case: dict[str, Any]) -> dict[str, Any]:
    found = follow(case["text"], **case.get("files", {}))
    trace = found.trace()
    live = [check for check in trace.checks if not check.dead and check.strength]
    idle = [check for check in trace.checks if check not in live]
    met: dict[str, Any] = {
        "checks": [
            {name: numbers(value) for name, value in check.tolerances.items()} for check in live
        ],
        "dead": sorted({check.dead or "always true" for check in idle}),
        "times": [check.times for check in live],
        "skips": [skip.condition for skip in trace.skips],
        "seeds": [seed.value for seed in trace.seeds],
        "replaced": [replaced.target for replaced in trace.replaced],
    }
    return {name: met[name] for name in case["meets"]}


@pytest.mark.parametrize("name", CASES)
def test_following_a_test_meets_what_the_case_says(name: str) -> None:
    case = CASES[name]
    wanted = dict(case["meets"])
    if "checks" in wanted:
        wanted["checks"] = [
            {k: v if isinstance(v, dict) else {"": v} for k, v in check.items()}
            for check in wanted["checks"]
        ]
    assert _met(case) == wanted


HOSTILE = {
    "a deep expression": "def test_it():\n    assert " + "-" * 3000 + "1\n",
    "a long sum": "def test_it():\n    assert " + "+".join(["x"] * 9000) + " == 1\n",
    "a loop without end": "def test_it():\n    while True:\n        pass\n    assert 1 == x\n",
    "a recursion": "def f(n):\n    return f(n + 1)\n\n\ndef test_it():\n    assert f(0) == 1\n",
    "two that call each other": (
        "def f(n):\n    return g(n)\n\n\ndef g(n):\n    return f(n)\n\n\n"
        "def test_it():\n    assert f(0) == 1\n"
    ),
    "a huge power": "N = 9 ** 9 ** 9\n\n\ndef test_it():\n    assert N == 1\n",
    "a huge text": "N = 'x' * 10 ** 12\n\n\ndef test_it():\n    assert N == 1\n",
    "a huge format": "N = '%999999999d' % 1\n\n\ndef test_it():\n    assert N == 1\n",
    "a huge shift": "N = 1 << 10 ** 9\n\n\ndef test_it():\n    assert N == 1\n",
    "doubling words": "x = y\n" + "x = f(x, x)\n" * 200 + "\n\ndef test_it():\n    assert x == 1\n",
    "a list that holds itself": "x = []\nx.append(x)\n\n\ndef test_it():\n    assert x == z\n",
    "a dictionary that holds itself": "x = {}\nx['x'] = x\n\n\ndef test_it():\n    assert x == z\n",
    "an object that holds itself": (
        "class C:\n    pass\n\n\nc = C()\nc.c = c\n\n\ndef test_it():\n    assert c == z\n"
    ),
    "nested ranges": "def test_it():\n" + "".join(
        "    " * (depth + 1) + f"for v{depth} in range(8):\n" for depth in range(12)
    ) + "    " * 13 + "assert v0 == 1\n",
    "a product of products": (
        "import itertools\n\nX = list(itertools.product(range(99), repeat=9))\n\n\n"
        "def test_it():\n    assert X == 1\n"
    ),
    "a class that is its own base": (
        "class C(C):\n    pass\n\n\ndef test_it():\n    assert C == 1\n"
    ),
    "odd calls": (
        "import pytest\n\n\n@pytest.mark.parametrize()\n@pytest.mark.skipif()\n@pytest.fixture()\n"
        "def f(*a, **k):\n    setattr()\n    getattr(1)\n    dict(3)\n    zip(1, 2)\n\n\n"
        "def test_it(f):\n    pytest.raises()\n    map()\n    all()\n    [].pop()\n    {}.get()\n"
        "    ''.join(1)\n    range('x')\n    int([])\n    assert f\n"
    ),
    "odd parameters": (
        "import pytest\n\n\n@pytest.mark.parametrize('a', 7)\n@pytest.mark.parametrize(3, [1])\n"
        "@pytest.mark.parametrize('b,c', [1, (2,), pytest.param()])\ndef test_it(a, b, c):\n"
        "    assert a == b\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_followed_within_bounds(name: str) -> None:
    try:
        found = follow(HOSTILE[name])
    except FactUnavailable:
        return  # nobody parses it; FT219 and FT413 say so
    trace = found.trace()
    assert found.files.depth == 0
    assert len(trace.checks) <= 4000
    assert all(len(check.text) < 600 for check in trace.checks)


def test_modules_that_import_each_other_are_followed_once() -> None:
    texts = {
        PATH: "from tests.one import *\n\n\ndef test_it():\n    assert A == 1\n",
        "tests/__init__.py": "",
        "tests/one.py": "from tests.two import B\nA = B\n",
        "tests/two.py": "from tests.one import A\nB = 3\n",
    }
    assert "test_it" in files_of(texts).module(PATH).names


@given(st.lists(st.floats(1e-9, 1.0), min_size=1, max_size=4), st.floats(1.01, 100.0))
def test_a_tolerance_is_looser_exactly_when_it_grows(values: list[float], factor: float) -> None:
    old, new = {"rtol": values[0]}, {"rtol": values[0] * factor}
    assert [found.name for found in loosened(old, new)] == ["rtol"]
    assert list(loosened(new, old)) == []
    assert list(loosened(old, old)) == []


@given(st.integers(1, 20), st.integers(1, 20))
def test_fewer_decimals_are_looser(before: int, after: int) -> None:
    found = list(loosened({"decimal": before}, {"decimal": after}))
    assert bool(found) == (after < before)
