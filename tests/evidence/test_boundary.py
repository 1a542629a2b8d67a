# SPDX-License-Identifier: Apache-2.0
"""The boundary: what files and tests import elsewhere, and what of it the policy binds to them."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from fasttrack.testing import Content, Repo
from tests.evidence.units import WANTED, changed_units, inputs, lane, paths, reasons, world

NODES = (
    *("engine/foo/m0.py", "engine/foo/m1.py", "engine/foo/m2.py"),
    *("tests/t0.py", "tests/t1.py", "oracle/o0.py", "oracle/o1.py"),
    *("engine/x0.py", "engine/x1.py", "lib/x2.py"),
)
"""Files of the roots, files that judge, and others."""
nodes = st.sampled_from(NODES)


def closed(start: set[str], edges: set[tuple[str, str]], within: tuple[str, ...]) -> set[str]:
    """`start`, and where edges lead from there, over some of the nodes alone."""
    found = start
    for _ in NODES:
        found = found | {b for a, b in edges if a in found and b.startswith(within)}
    return found


@settings(max_examples=40)
@given(st.sets(st.tuples(nodes, nodes), max_size=14))
def test_the_boundary_is_what_files_and_tests_import_elsewhere_and_nothing_behind_it(
    edges: set[tuple[str, str]],
) -> None:
    judges, roots = ("tests/", "oracle/"), ("engine/foo/",)
    files = closed({"engine/foo/m0.py"}, edges, roots)
    judging = {b for a, b in edges if a in files and b.startswith(judges)} | {"tests/t0.py"}
    tests = closed(judging, edges, judges + roots) - files
    near = {b for a, b in edges if a in files | tests and not b.startswith(judges + roots)}
    sources = {
        path: "".join(f"import {b[:-3].replace('/', '.')}\n" for a, b in edges if a == path)
        for path in NODES
    }
    unit = "{id: u, files: [engine/foo/m0.py], tests: [tests/t0.py], axes: [rows]}"
    with tempfile.TemporaryDirectory() as folder:
        Repo(Path(folder)).commit("main", lane(f"units:\n  - {unit}\n") | sources)
        assert paths(inputs(Path(folder))["u"]) == (files, tests, near)


def test_what_the_policy_binds_moves_from_the_boundary_to_the_files(tmp_path: Path) -> None:
    bind = '"engine/o?s.py", "csrc/**", engine/deep.py'
    repo, start = world(tmp_path, bind=bind)
    core = inputs(tmp_path)["core"]
    assert {f.path for f in core.boundary} == WANTED["core"][2] - {
        "engine/ops.py", "csrc/common/math.cuh",
    }  # fmt: skip
    assert reasons(core)["engine/ops.py"] == "bound by the policy (engine/o?s.py)"
    # Only what is imported directly can be bound.
    assert "engine/deep.py" not in reasons(core)
    digests, _, boundary = changed_units(tmp_path, repo, start, {"engine/ops.py": "X = 1\n"})
    assert (digests, boundary) == ({"core", "helper", "rest", "path"}, set())


def test_what_tests_run_of_the_roots_brings_what_it_imports_elsewhere(tmp_path: Path) -> None:
    repo, start = world(tmp_path)
    edit: dict[str, Content] = {"tests/foo/test_helper.py": "import engine.foo.shared\n"}
    repo.commit("topic", edit, parent=start)
    helper = inputs(tmp_path, "topic")["helper"]
    assert "engine/foo/shared.py" in paths(helper)[1]
    assert reasons(helper)["vendor/stubs/torch.py"] == "imported by engine/foo/shared.py"
    assert paths(helper)[2] == WANTED["helper"][2] | {"vendor/stubs/torch.py"}


def test_what_the_policy_binds_moves_to_the_tests_where_only_they_import_it(
    tmp_path: Path,
) -> None:
    repo, start = world(tmp_path, bind="engine/sampling.py, engine/ops.py")
    both: dict[str, Content] = {"oracle/model.py": "import oracle.step, engine.ops\n"}
    start = repo.commit("main", both, parent=start)
    found = inputs(tmp_path)
    bound = {"engine/sampling.py", "engine/ops.py"}
    for unit in ("core", "helper", "rest", "path"):
        assert paths(found[unit])[0] & bound == {"engine/ops.py"}
    assert not paths(found["gate-files"])[0] & bound
    assert paths(found["core"])[1] & bound == {"engine/sampling.py"}
    assert paths(found["gate-files"])[1] & bound == bound
    assert not set().union(*(paths(one)[2] for one in found.values())) & bound
    assert (
        reasons(found["core"])["engine/sampling.py"] == "bound by the policy (engine/sampling.py)"
    )
    changed = changed_units(tmp_path, repo, start, {"engine/sampling.py": "X = 1\n"})
    assert changed == (set(), {"core", "rest", "path", "gate-files"}, set())
