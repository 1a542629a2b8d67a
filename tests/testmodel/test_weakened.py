# SPDX-License-Identifier: Apache-2.0
"""What a change takes from tests: other forms take nothing, carried edits are found."""

import time
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasttrack.testmodel.weakening import Kind

from .changed import taken

TEST = "tests/test_more.py"
_IMPORTS = (
    "import pytest\nimport torch\n\nfrom host.fast import kernels\nfrom reference import oracle\n"
)
STRICT = (
    f"{_IMPORTS}\n\ndef test_one():\n    found = kernels.step([1.0])\n"
    "    torch.testing.assert_close(found, oracle.step([1.0]), rtol=1e-3, atol=1e-3)\n"
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("found", "result"),
        ("def test_one", "def helper_of_none():\n    pass\n\n\ndef test_one"),
        ("rtol=1e-3, atol=1e-3", "atol=1e-3, rtol=1e-3"),
        ("rtol=1e-3", "rtol=10 ** -3"),
        ("    found = kernels.step([1.0])\n", "    found = kernels.step(\n        [1.0]\n    )\n"),
        ("import pytest\nimport torch\n", "import pytest\nimport os\nimport torch\n"),
    ],
)
def test_another_form_of_the_same_test_takes_nothing(old: str, new: str) -> None:
    assert old in STRICT
    assert taken({TEST: STRICT}, {TEST: STRICT.replace(old, new)}) == set()


@given(st.permutations(range(4)), st.sampled_from(["test_more", "test_other"]))
@settings(max_examples=12, deadline=None)
def test_tests_in_another_order_or_file_are_the_same(order: list[int], name: str) -> None:
    tests = [STRICT.removeprefix(_IMPORTS).replace("test_one", f"test_{n}") for n in range(4)]
    tests = [text.replace("[1.0]", f"[{n}.0]") for n, text in enumerate(tests)]
    moved = {f"tests/{name}.py": _IMPORTS + "".join(tests[n] for n in order)}
    assert taken({TEST: _IMPORTS + "".join(tests)}, {TEST: None, **moved}) == set()


MIXIN = (
    f"{_IMPORTS}\n\nclass Checks:\n    rtol = 1e-3\n\n    def test_step(self):\n"
    "        torch.testing.assert_close("
    "kernels.step([1.0]), oracle.step([1.0]), rtol=self.rtol, atol=0.0)\n"
)
HEIR = "from tests.checks import Checks\n\n\nclass TestStep(Checks):\n    pass\n"
USER = (
    f"{_IMPORTS}from tests.between import close\n\n\ndef test_one():\n"
    "    close(kernels.step([1.0]), oracle.step([1.0]))\n"
)
BETWEEN = (
    "import torch\n\nfrom tests.limits import RTOL\n\n\ndef close(found, wanted):\n"
    "    torch.testing.assert_close(found, wanted, rtol=RTOL, atol=0.0)\n"
)
STARRED = USER.replace("from tests.between import close", "from tests.between import *")


@pytest.mark.parametrize(
    ("base", "head"),
    [
        ({"tests/checks.py": MIXIN, TEST: HEIR}, {"tests/checks.py": MIXIN.replace("1e-3", "0.5")}),
        (
            {"tests/checks.py": MIXIN, TEST: HEIR},
            {TEST: HEIR.replace("    pass", "    rtol = 0.5")},
        ),
        (
            {"tests/limits.py": "RTOL = 1e-3\n", "tests/between.py": BETWEEN, TEST: USER},
            {"tests/limits.py": "RTOL = 0.5\n"},
        ),
        (
            {"tests/limits.py": "RTOL = 1e-3\n", "tests/between.py": BETWEEN, TEST: STARRED},
            {"tests/between.py": BETWEEN.replace("rtol=RTOL", "rtol=RTOL * 100")},
        ),
    ],
    ids=["a base class", "a class that inherits", "a helper of a helper", "a star import"],
)
def test_a_looser_tolerance_is_found_where_it_is_carried_from(
    base: Mapping[str, str], head: Mapping[str, str]
) -> None:
    assert Kind.TOLERANCE in taken(base, head)


def test_a_name_that_comes_before_an_imported_one_is_seen() -> None:
    base = {"tests/limits.py": "RTOL = 1e-3\n", "tests/between.py": BETWEEN, TEST: STARRED}
    own = "def close(found, wanted):\n    pass\n\n\ndef test_one"
    assert taken(base, {TEST: STARRED.replace("def test_one", own)}) == {Kind.ASSERTION}


def _many(count: int, body: str) -> str:
    return _IMPORTS + "".join(f"\n\ndef test_{n}():\n{body}" for n in range(count))


_BODY = "    assert kernels.step([1.0]) == oracle.step([1.0])\n"
HOSTILE = {
    "100,000 lines": STRICT + "# a line\n" * 100_000,
    "3,000 tests": _many(3000, _BODY),
    "300 tests of 300 assertions": _many(300, _BODY * 300),
    "huge parametrisations": _IMPORTS + "".join(
        f"\n\n@pytest.mark.parametrize('n', range(10 ** 9))\ndef test_{n}(n):\n{_BODY}"
        for n in range(50)
    ),
    "a product of huge axes": _IMPORTS + "\n\n" + "".join(
        f"@pytest.mark.parametrize('n{axis}', range(100))\n" for axis in range(12)
    ) + f"def test_one({', '.join(f'n{axis}' for axis in range(12))}):\n{_BODY}",
    "a deep expression": _many(1, f"    assert {'(' * 150}1{')' * 150} == 1\n"),
    "a chain of attributes": _many(1, f"    assert kernels{'.a' * 20_000} == 1\n"),
    "null bytes": STRICT + "\0",
    "newer syntax": STRICT + "\n\ntype Pair[T] = tuple[T, T]\n",
    "a class that inherits in a diamond": f"{_IMPORTS}\n\nclass A0:\n    pass\n"
    + "\n\nclass B0(A0):\n    pass\n"
    + "".join(
        f"\n\nclass {c}{n + 1}(A{n}, B{n}):\n    pass\n" for n in range(40) for c in "AB"
    )
    + f"\n\nclass TestX(A40):\n    def test_one(self):\n    {_BODY}",
}  # fmt: skip
UNREAD = ("100,000 lines", "null bytes", "newer syntax")


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("comes", [True, False], ids=["comes", "goes"])
def test_a_hostile_file_takes_bounded_time_and_never_passes_unread(name: str, comes: bool) -> None:
    old, new = (STRICT, HOSTILE[name]) if comes else (HOSTILE[name], STRICT)
    started = time.process_time()

    found = taken({TEST: old}, {TEST: new.replace("1e-3", "0.5")})

    assert time.process_time() - started < 5.0
    assert Kind.UNTOLD in found or name not in UNREAD


_HOOK = "def pytest_collection_modifyitems(config, items):\n    for item in items:\n        {}\n"


@pytest.mark.parametrize(
    ("path", "text", "takes"),
    [
        ("tests/conftest.py", _HOOK.format("item.module.RTOL = 1.0"), {Kind.SKIPPED}),
        ("tests/conftest.py", _HOOK.format('setattr(item.cls, "rtol", 1.0)'), {Kind.SKIPPED}),
        ("tests/conftest.py", _HOOK.format("item.add_marker(pytest.mark.timeout(60))"), set()),
        ("tests/conftest.py", _HOOK.format("item.user_properties = []"), set()),
        ("tests/conftest.py", "def pytest_configure(config):\n    config.rows = 4\n", set()),
        ("tests/__init__.py", "", set()),
        ("tests/__init__.py", '"""All tests."""\n\nfrom host.fast import kernels\n', set()),
        (
            "tests/__init__.py",
            "from host.fast import kernels\n\nkernels.step = lambda values: values\n",
            {Kind.ASSERTION, Kind.MOCK},
        ),
    ],
)
def test_what_is_imported_before_the_tests_counts(path: str, text: str, takes: set[Kind]) -> None:
    assert taken({TEST: STRICT}, {path: text}) == takes


def test_an_import_that_replaces_the_unit_counts_though_nothing_speaks_of_it() -> None:
    patch = f"{_IMPORTS}\n\nkernels.step = oracle.step\n"
    head = {TEST: f"import tests.patched\n{STRICT}", "tests/patched.py": patch}
    assert Kind.ASSERTION in taken({TEST: STRICT}, head)
    assert taken({TEST: STRICT}, head | {"tests/patched.py": "LIMIT = 4\n"}) == set()


_BY_HOOK = (
    f"{_IMPORTS}\n\ndef test_one(rows):\n    assert kernels.step([rows]) == oracle.step([rows])\n"
    "\n\ndef pytest_generate_tests(metafunc):\n    if 'rows' in metafunc.fixturenames:\n"
    "        metafunc.parametrize('rows', ROWS)\n\n\nROWS = {}\n"
)
_BY_MARK = (
    f"{_IMPORTS}\n\n@pytest.mark.parametrize('rows', [1, 2, 8])\ndef test_one(rows):\n"
    "    assert kernels.step([rows]) == oracle.step([rows])\n"
)


@pytest.mark.parametrize(
    ("old", "new", "takes"),
    [
        (_BY_HOOK.format("[1, 2, 8]"), _BY_HOOK.format("[1]"), {Kind.PARAMETERS}),
        (_BY_HOOK.format("[1, 2, 8]"), _BY_HOOK.format("[8, 2, 1]"), set()),
        (_BY_HOOK.format("[1, 2, 8]"), _BY_MARK, set()),
        (_BY_MARK, _BY_HOOK.format("[1, 2, 8]"), set()),
        (_BY_MARK, _BY_HOOK.format("[1, 2]"), {Kind.PARAMETERS}),
        (_BY_MARK, _BY_HOOK.format("range(rows_of())"), {Kind.UNTOLD}),
    ],
)
def test_parametrisations_of_a_hook_are_those_of_a_mark(
    old: str, new: str, takes: set[Kind]
) -> None:
    assert taken({TEST: old}, {TEST: new}) == takes
