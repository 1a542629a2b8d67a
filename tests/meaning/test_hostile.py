# SPDX-License-Identifier: Apache-2.0
"""Sources that are made to be read badly: each is told or could not be told, within a bound.

Every source also changes a foreign object in plain sight. So a verdict without a finding means that
something was passed over, and a case can not go green by being ignored.
"""

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from fasttrack.testing import Content, Repo
from fasttrack.verdict import Request, evaluate

from .corpus import project
from .judged import AS_OF

ACT = "host/fast/act.py"
SECONDS = 2.0
"""Processor time for one such change, all rules together."""
OPEN = "from host.shared import ops\n\nops.LIMIT = 9\n"
DEEP = 10_000

NESTED = {
    "parentheses": f"x = {'(' * DEEP}1{')' * DEEP}\n",
    "brackets": f"x = {'[' * 90}1{']' * 90}\n",
    "signs": f"x = {'-' * DEEP}1\n",
    "negations": f"x = {'not ' * DEEP}1\n",
    "sums": f"x = 1{' + 1' * DEEP}\n",
    "texts that are joined": f"x = 'a'{' + chr(97)' * DEEP}\n",
    "attributes": f"x = ops{'.part' * DEEP}\n",
    "calls": f"x = ops{'()' * DEEP}\n",
    "elements": f"x = ops{'[0]' * DEEP}\n",
    "lambdas": f"x = {'lambda: ' * DEEP}1\n",
    "conditions": f"x = {'1 if ops else ' * DEEP}1\n",
    "comparisons": f"x = 1{' < 1' * DEEP}\n",
    "blocks": "".join(f"{' ' * n}if ops:\n" for n in range(99)) + " " * 99 + "x = 1\n",
    "elif": "if ops:\n    x = 1\n" + "elif ops:\n    x = 1\n" * DEEP,
    "functions": "".join(f"{' ' * n}def f{n}():\n" for n in range(99)) + " " * 99 + "pass\n",
    "decorators": "@ops\n" * DEEP + "def f():\n    pass\n",
    "targets": "x = " * DEEP + "ops\n",
    "walrus": "x = " + "(x := " * 150 + "ops" + ")" * 150 + "\n",
}
LONG = {
    "a hundred thousand lines": "x = 1\n" * 100_000,
    "a hundred thousand comments": "# a word\n" * 100_000,
    "a long line": f"x = [{'1, ' * 60_000}]\n",
    "many changes of one object": "".join(f"ops.LIMIT = {n}\n" for n in range(9_000)),
    "many objects": "".join(f"ops.x{n} = 1\n" for n in range(9_000)),
    "many calls": "".join(f"setattr(ops, 'LIMIT', {n})\n" for n in range(9_000)),
    "many functions": "".join(f"def f{n}(x):\n    ops.LIMIT = x\n" for n in range(5_000)),
    "many functions that unpack": "".join(
        f"def f{n}(x):\n    ops, = x\n    ops.LIMIT = x\n" for n in range(5_000)
    ),
    "many imports": "".join(f"import torch.x{n} as x{n}\n" for n in range(5_000)),
    "ten thousand names": (
        f"from host.shared.ops import {', '.join(f'n{n}' for n in range(10_000))}\n"
    ),
    "ten thousand keys": f"x = {{{', '.join(f'{n!r}: ops' for n in map(str, range(10_000)))}}}\n",
}
GROWING = {
    "a text that doubles": "x = 'a'\n" + "x += x\n" * 100,
    "a text that is joined to itself": "x = 'a'\n" + "x = x + x\n" * 100,
    "a text that is repeated": "x = 'a' * 10**10\ny = 'ab' % ()\nz = f'{x}{x}'\n",
    "a list that holds itself twice": "x = [ops]\n" + "x = [x, x]\n" * 100,
    "a list that holds itself": (
        "x = [ops]\nx.append(x)\nx[0][0].LIMIT = 1\nfor y in x:\n    x += y\n"
    ),
    "calls that double": "".join(
        f"def f{n}(x):\n    f{n + 1}(x)\n    f{n + 1}([x])\n" for n in range(40)
    )
    + "def f40(x):\n    pass\n\n\nf0(ops)\n",
    "a function that calls itself": "def f(x):\n    return f([x])\n\n\nf(ops)\n",
    "functions that call each other": (
        "def f(x):\n    return g([x])\n\n\ndef g(x):\n    return f((x,))\n\n\nf(ops)\n"
    ),
    "loops in loops": "t = (ops,) * 2\n"
    + f"r = ({'ops, ' * 60})\n"
    + "".join(f"{' ' * n}for x{n} in r:\n" for n in range(12))
    + " " * 12
    + "y = x0\n",
    "comprehensions in comprehensions": f"r = ({'ops, ' * 60})\nx = ["
    + "x0 "
    + "".join(f"for x{n} in r " for n in range(12))
    + "]\n",
    "products": (
        f"import itertools\n\nr = ({'ops, ' * 60})\nx = list(itertools.product(r, r, r, r, r, r))\n"
    ),
    "maps of maps": f"r = ({'ops, ' * 60})\n"
    + "x = r\n"
    + "x = list(map(lambda y: list(map(lambda z: (y, z), r)), x))\n" * 8,
    "partials of partials": "from functools import partial\n\nx = ops\n"
    + "x = partial(x, x, x)\n" * 60
    + "x()\n",
    "a list that doubles and is handed over": (
        "from host.shared.registry import register\n\nx = [ops]\n"
    )
    + "x = [x, x]\n" * 100
    + "register(ops, x)\n",
    "five thousand aliases": "x0 = ops\n" + "".join(f"x{n + 1} = x{n}\n" for n in range(5_000)),
    "lambdas that are called": f"x = {'(lambda y: ' * 60}ops{')(ops)' * 60}\n",
    "names that stand for each other": "x = y = ops\n" + "x = y\ny = x\n" * 500,
    "branches": "x = ops\n" + "if ops:\n    x = [x]\nelse:\n    x = (x, x)\n" * 200,
}
CLASSES = {
    "a class above itself": (
        "class A:\n    pass\n\n\nclass A(A):\n    pass\n\n\nA().x = 1\nA.y.z = 1\n"
    ),
    "two classes above each other": (
        "class A:\n    pass\n\n\nclass B(A):\n    pass\n\n\nclass A(B):\n    pass\n\n\n"
        "A.__bases__ = (A,)\nA().x.y = 1\n"
    ),
    "a thousand classes": "class C0:\n    x = ops\n\n\n"
    + "".join(f"class C{n + 1}(C{n}):\n    pass\n\n\n" for n in range(1000))
    + "C1000.x.LIMIT = 1\n",
    "three thousand classes": "".join(f"class C{n + 1}(C{n}):\n    pass\n" for n in range(3_000))
    + "C3000.x.LIMIT = 1\n",
    "a class that is its own metaclass": (
        "class A(type):\n    pass\n\n\nclass A(metaclass=A):\n    pass\n"
    ),
    "a class with many bases": "".join(f"class C{n}:\n    pass\n\n\n" for n in range(500))
    + f"class D({', '.join(f'C{n}' for n in range(500))}):\n    pass\n\n\nD.x.y = 1\n",
    "an instance that is called": (
        "class A:\n    def __call__(self):\n        return self()\n\n\nA()()()\n"
    ),
    "a property that asks itself": (
        "class A:\n    @property\n    def x(self):\n        return self.x\n\n\nA().x.y = 1\n"
    ),
}
SPELLED: Mapping[str, Content] = {
    "null bytes": f"{OPEN}x = 1\0\n",
    "only null bytes": b"\0" * 1000,
    "utf-16": OPEN.encode("utf-16"),
    "utf-16 without a mark": OPEN.encode("utf-16-le"),
    "latin-1": f"# coding: latin-1\n{OPEN}# \xe4\n".encode("latin-1"),
    "an encoding that nobody knows": f"# coding: nothing\n{OPEN}",
    "utf-7": f"# coding: utf-7\n{OPEN}",
    "a mark at the start": f"\ufeff{OPEN}",
    "two marks": f"\ufeff\ufeff{OPEN}",
    "carriage returns": OPEN.replace("\n", "\r"),
    "form feeds": OPEN.replace("\n", "\n\f"),
    "line separators": OPEN.replace("\n", "\u2028"),
    "a lone surrogate": OPEN.encode() + b"x = '\xed\xa0\x80'\n",
    "letters that Python folds": OPEN.replace("ops", "\uff4fps"),
    "parameters of types": f"{OPEN}def f[T](x: T) -> T:\n    return x\n",
    "types by name": f"{OPEN}type X = int\n",
    "quotes in quotes": OPEN + 'x = f"{"a"}"\n',
    "templates": f"{OPEN}x = t'{{x}}'\n",
    "exceptions without parentheses": f"{OPEN}try:\n    pass\nexcept A, B:\n    pass\n",
    "tabs and blanks": f"{OPEN}if x:\n        y = 1\n\tz = 1\n",
    "a backslash at the end": f"{OPEN}x = 1 \\",
    "a text that does not end": f"{OPEN}x = '''\n",
    "nothing but a mark": "\ufeff\n" + OPEN.replace("ops", "o\u0070s"),
    "a number of five thousand digits": f"{OPEN}x = {'9' * 5000}\n",
    "many escapes": OPEN + "x = '" + "\\d" * 5000 + "'\n",
}
SOURCES: Mapping[str, Content] = {
    **{f"nested {name}": OPEN + text for name, text in NESTED.items()},
    **{f"long: {name}": OPEN + text for name, text in LONG.items()},
    **{f"growing: {name}": OPEN + text for name, text in GROWING.items()},
    **{f"classes: {name}": OPEN + text for name, text in CLASSES.items()},
    **{f"spelled: {name}": text for name, text in SPELLED.items()},
}
RING = 60
MODULES: Mapping[str, Mapping[str, Content]] = {
    "a ring of imports": {
        f"host/fast/m{n}.py": (
            f"from .m{(n + 1) % RING} import *\nfrom .m{(n + 1) % RING} import x\nx.y = 1\n"
        )
        for n in range(RING)
    },
    "every module imports every other": {
        f"host/fast/m{n}.py": "".join(f"from . import m{k}\n" for k in range(RING))
        + f"m{(n + 1) % RING}.x.y = 1\n"
        for n in range(RING)
    },
    "a module that imports itself": {
        "host/fast/m0.py": (
            "from . import m0\nfrom .m0 import x as x\nfrom .m0 import *\nx.y = 1\nm0.m0.m0.x = 1\n"
        )
    },
    "a star with ten thousand names": {
        "host/fast/m0.py": "".join(f"n{n} = {n}\n" for n in range(10_000)),
        "host/fast/m1.py": "from .m0 import *\n\nn9999.x = 1\n",
    },
    "a chain of a hundred aliases over modules": {
        f"host/fast/m{n}.py": f"from .m{n + 1} import x{n + 1} as x{n}\nx{n}.y = 1\n"
        for n in range(100)
    }
    | {"host/fast/m100.py": "from host.shared import ops as x100\n"},
}


def judged(change: Mapping[str, Content], where: Path) -> tuple[set[str], float]:
    """The rules that have a finding, and the seconds that it took."""
    repo = Repo(where, bare=True)
    repo.commit("topic", change, parent=repo.commit("main", project()))
    before = time.process_time()
    verdict = evaluate(Request(where, target="main", head="topic", labelled=True), AS_OF)
    return {found.rule for found in verdict.findings}, time.process_time() - before


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())
def test_a_hostile_source_is_told_or_could_not_be_told_in_time(
    source: Content, tmp_path: Path
) -> None:
    rules, seconds = judged({ACT: source}, tmp_path)
    assert rules & {"FT112", "FT124", "FT127", "FT201", "FT219"}
    assert seconds < SECONDS


@pytest.mark.parametrize("change", MODULES.values(), ids=MODULES.keys())
def test_hostile_modules_are_told_in_time(change: Mapping[str, Content], tmp_path: Path) -> None:
    rules, seconds = judged({**change, ACT: OPEN}, tmp_path)
    assert "FT201" in rules
    assert seconds < SECONDS
