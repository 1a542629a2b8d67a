# SPDX-License-Identifier: Apache-2.0
"""A small engine with three units, and what each of them depends on, written down by hand."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from fasttrack.change.read import read_revision
from fasttrack.config import read_base_manifests, read_config
from fasttrack.evidence.inputs import InputGraph, UnitInputs
from fasttrack.testing import Content, Repo
from tests.engine import MANIFEST, POLICY, files

UNITS = """\
units:
  - id: core
    files: [engine/foo/attention.py, "engine/foo/*.cu"]
    data: ["engine/foo/*.json", "engine/sizes/*.json"]
    tests: [tests/foo/test_core.py]
    axes: [rows]
    archs: [sm_90a]
    variants: engine/foo/table.json
  - {id: helper, files: [engine/foo/helper.py], tests: [tests/foo/test_helper.py], axes: [rows]}
  - {id: rest, files: ["engine/foo/**"], tests: [tests/foo/test_gate.py], axes: [rows]}
"""
TYPED = (
    "from typing import TYPE_CHECKING\n"
    "if TYPE_CHECKING:\n    from engine.foo import late\n    import engine.deep\n"
)
SOURCES = {
    "engine/__init__.py": "",
    "engine/deep.py": "LIMIT = 1\n",
    "engine/ops.py": "import engine.deep\n",
    "engine/sampling.py": "import engine.deep\n",
    "engine/testing.py": "import engine.deep\n",
    "engine/foo/__init__.py": "",
    "engine/foo/attention.py": "from engine.foo import shared\nfrom engine.ops import matmul\n",
    "engine/foo/gate.py": "import engine.foo.shared\nfrom oracle import model\n",
    "engine/foo/helper.py": TYPED + "def f():\n    from .near import X\n",
    "engine/foo/kernel.cu": '#include "tile.cuh"\n#include "common/math.cuh"\n',
    "engine/foo/late.py": "",
    "engine/foo/near.py": "from engine import ops\n",
    "engine/foo/shared.py": "import torch\n",
    "engine/foo/table.json": "{}\n",
    "engine/foo/more.json": "{}\n",
    "engine/sizes/core.json": "{}\n",
    "engine/foo/tile.cuh": "",
    "csrc/common/math.cuh": '#include "limits.cuh"\n',
    "csrc/common/limits.cuh": "",
    "vendor/stubs/torch.py": "",
    "engine/runners/torch.py": "",
    "engine/runners/__init__.py": "",
    "conftest.py": "",
    "tests/__init__.py": "",
    "tests/conftest.py": "from tests import fixtures\n",
    "tests/fixtures.py": f"{TYPED}def f():\n    from engine import testing\n",
    "tests/harness.py": "import oracle.model\n",
    "tests/foo/conftest.py": "",
    "tests/foo/test_core.py": "from tests.harness import run\nimport engine.foo.attention\n",
    "tests/foo/test_gate.py": "",
    "tests/foo/test_helper.py": 'CASES = "cases/helper.yaml"\n',
    "tests/foo/cases/helper.yaml": "a: 1\n",
    "tests/other/conftest.py": "",
    "tests/other/test_other.py": "from tests.harness import run\n",
    "oracle/__init__.py": "",
    "oracle/model.py": "from oracle import step\n",
    "oracle/step.py": "from engine.sampling import rule\n",
    "docs/foo.md": "words\n",
}
CONFTESTS = {"conftest.py", "tests/__init__.py", "tests/conftest.py", "tests/fixtures.py",
             "tests/foo/conftest.py"}  # fmt: skip
ORACLE = {"oracle/__init__.py", "oracle/model.py", "oracle/step.py"}
CORE = {f"engine/foo/{name}" for name in (
    "__init__.py", "attention.py", "kernel.cu", "more.json", "shared.py", "table.json", "tile.cuh",
)} | {"engine/sizes/core.json"}  # fmt: skip
ROOT_FILES = {path for path in SOURCES if path.startswith("engine/foo/")}
ABOVE = {"engine/__init__.py"}
STUB = {"vendor/stubs/torch.py"}
TESTED = ABOVE | {"engine/testing.py"}
"""What the `conftest.py` files of all tests lead to outside of roots, tests and oracle."""
JUDGED = TESTED | {"engine/sampling.py"}
"""The same with what the oracle imports."""
CORE_BOUNDARY = STUB | JUDGED | {"engine/ops.py", "csrc/common/math.cuh"}
CORE_TESTS = CONFTESTS | ORACLE | {"tests/foo/test_core.py", "tests/harness.py"}
HELPER_TESTS = CONFTESTS | {"tests/foo/test_helper.py", "tests/foo/cases/helper.yaml"}
GATE_TESTS = CONFTESTS | ORACLE | {"tests/foo/test_gate.py"}

Wanted = tuple[set[str], set[str], set[str]]
WANTED: Mapping[str, Wanted] = {
    "core": (CORE, CORE_TESTS, CORE_BOUNDARY),
    "helper": (
        {"engine/foo/__init__.py", "engine/foo/helper.py", "engine/foo/near.py"},
        HELPER_TESTS,
        TESTED | {"engine/ops.py"},
    ),
    "rest": (ROOT_FILES, GATE_TESTS, CORE_BOUNDARY),
    "path": (ROOT_FILES | CORE, CORE_TESTS | HELPER_TESTS | GATE_TESTS, CORE_BOUNDARY),
    "gate-files": (
        {"engine/foo/__init__.py", "engine/foo/gate.py", "engine/foo/shared.py"},
        GATE_TESTS,
        STUB | JUDGED,
    ),
}
"""Unit to its files, tests and boundary."""


def lane(units: str = UNITS, bind: str = "") -> dict[str, str]:
    """Policy and manifest, with these units; `bind` is the policy's list of patterns."""
    own = files()
    before, _, rest = own[MANIFEST].partition("units:")
    policy = own[POLICY].replace(
        "  - {class: docs", "  - {class: reference, match: [oracle/**]}\n  - {class: docs"
    )
    after = rest.partition("\nscope:")[2]
    return {
        POLICY: policy + (f"bind: [{bind}]\n" if bind else ""),
        MANIFEST: f"{before}{units}\nscope:{after}",
    }


def world(where: Path, *, bind: str = "", object_format: str = "sha1") -> tuple[Repo, str]:
    """The engine as one commit on `main`."""
    repo = Repo(where, object_format=object_format)
    return repo, repo.commit("main", lane(bind=bind) | SOURCES)


@contextmanager
def graph(where: Path, revision: str = "main") -> Iterator[InputGraph]:
    """The inputs at a revision."""
    with read_revision(where, revision) as change:
        config = read_config(change, folder=None, policy_file=None)
        manifest = read_base_manifests(change, config).named(None)
        yield InputGraph(change, change.base, manifest, config)


def inputs(where: Path, revision: str = "main") -> dict[str, UnitInputs]:
    """Every unit's inputs at a revision."""
    with graph(where, revision) as found:
        return {unit: found.unit_inputs(unit) for unit in found.units}


def paths(found: UnitInputs) -> Wanted:
    """Files, tests and boundary."""
    files, tests, boundary = (
        {file.path for file in listed} for listed in (found.files, found.tests, found.boundary)
    )
    return files, tests, boundary


def reasons(found: UnitInputs) -> dict[str, str]:
    """Path to why it is an input."""
    return {f.path: f.reason for f in (*found.boundary, *found.tests, *found.files)}


def changed_units(where: Path, repo: Repo, start: str, change: Mapping[str, Content]) -> Wanted:
    """Units whose digest, whose tests digest, and whose boundary a change to `start` moves."""
    repo.commit("topic", change, parent=start)
    before, after = inputs(where, start), inputs(where, "topic")
    return (
        {unit for unit in before if before[unit].digest != after[unit].digest},
        {unit for unit in before if before[unit].tests_digest != after[unit].tests_digest},
        {u for u in before if bytes_of(before[u].boundary) != bytes_of(after[u].boundary)},
    )


def bytes_of(listed: object) -> set[tuple[str, str, str]]:
    """Inputs without their reasons."""
    assert isinstance(listed, tuple)
    return {(file.path, file.mode, file.sha256) for file in listed}
