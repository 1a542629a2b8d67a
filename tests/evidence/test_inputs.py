# SPDX-License-Identifier: Apache-2.0
"""What evidence depends on: against sets written by hand, and import graphs made at random."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasttrack.change.read import read_change
from fasttrack.cli.evidence import command
from fasttrack.config import judged_or_head, read_base_manifests, read_config
from fasttrack.errors import FactUnavailable, InputError
from fasttrack.evidence.inputs import InputGraph
from fasttrack.testing import Content, File, Gitlink, Repo, Symlink
from tests.evidence.units import (
    ROOT_FILES,
    SOURCES,
    WANTED,
    changed_units,
    graph,
    inputs,
    lane,
    paths,
    reasons,
    world,
)

COMMENTS = {".py": "# a comment\n", ".cu": "// a comment\n", ".cuh": "// a comment\n"}


def test_every_unit_has_the_inputs_that_were_written_down_by_hand(tmp_path: Path) -> None:
    world(tmp_path)
    assert {unit: paths(found) for unit, found in inputs(tmp_path).items()} == WANTED


@pytest.mark.parametrize("path", sorted(SOURCES))
def test_a_changed_byte_changes_the_digests_of_the_units_that_list_it_and_no_other(
    tmp_path: Path, path: str
) -> None:
    repo, start = world(tmp_path)
    more = COMMENTS.get(Path(path).suffix, " ")
    changed = changed_units(tmp_path, repo, start, {path: SOURCES[path] + more})
    wanted = tuple({unit for unit, sets in WANTED.items() if path in sets[i]} for i in range(3))
    assert changed == wanted


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=10),
    st.lists(
        st.sampled_from(["import engine.foo.m{}", "from engine.foo import m{}", "from . import m{}",
                         "def f():\n    from .m{} import X"]),
        min_size=10, max_size=10,
    ),
    st.integers(0, 5),
)  # fmt: skip
def test_a_changed_module_changes_the_units_from_which_imports_lead_to_it(
    edges: list[tuple[int, int]], forms: list[str], changed: int
) -> None:
    sources: dict[str, Content] = {f"engine/foo/m{i}.py": "" for i in range(6)}
    for (source, target), form in zip(edges, forms, strict=False):
        path = f"engine/foo/m{source}.py"
        sources[path] = f"{sources[path]}{form.format(target)}\n"
    units = "units:\n" + "".join(
        f"  - {{id: m{i}, files: [engine/foo/m{i}.py], tests: [tests/t.py], axes: [rows]}}\n"
        for i in range(6)
    )
    reached = {(i, i) for i in range(6)} | set(edges)
    for _ in range(6):
        reached |= {(a, d) for a, b in reached for c, d in reached if b == c}
    with tempfile.TemporaryDirectory() as folder:
        repo = Repo(Path(folder))
        start = repo.commit("main", lane(units) | sources | {"tests/t.py": ""})
        path = f"engine/foo/m{changed}.py"
        edit: dict[str, Content] = {path: f"{sources[path]}# a comment\n"}
        digests, tests, boundary = changed_units(Path(folder), repo, start, edit)
    assert digests == {f"m{a}" for a, b in reached if b == changed} | {"path"}
    assert not tests | boundary


@pytest.mark.parametrize(
    ("unit", "path", "reason"),
    [
        ("core", "engine/foo/attention.py", "matches files pattern engine/foo/attention.py"),
        ("core", "engine/foo/table.json", "variant table"),
        ("core", "engine/foo/more.json", "data, matches engine/foo/*.json"),
        ("core", "engine/sizes/core.json", "data, matches engine/sizes/*.json"),
        ("core", "engine/foo/shared.py", "imported by engine/foo/attention.py"),
        ("core", "engine/foo/__init__.py", "imported by engine/foo/attention.py"),
        ("core", "engine/foo/tile.cuh", "included by engine/foo/kernel.cu"),
        ("core", "csrc/common/math.cuh", "included by engine/foo/kernel.cu"),
        ("core", "engine/ops.py", "imported by engine/foo/attention.py"),
        ("core", "tests/foo/test_core.py", "matches tests pattern tests/foo/test_core.py"),
        ("core", "tests/conftest.py", "above tests/foo/test_core.py"),
        ("core", "oracle/model.py", "imported by tests/harness.py"),
        ("core", "oracle/step.py", "imported by oracle/model.py"),
        ("core", "engine/sampling.py", "imported by oracle/step.py"),
        ("helper", "engine/testing.py", "imported by tests/fixtures.py"),
        ("helper", "engine/foo/__init__.py", "imported by engine/foo/helper.py"),
        ("helper", "tests/foo/cases/helper.yaml", "named in tests/foo/test_helper.py"),
        ("path", "engine/foo/late.py", "in the roots"),
        ("path", "engine/__init__.py", "package of engine/foo/__init__.py and 6 more"),
        ("gate-files", "engine/foo/gate.py", "gate file"),
        ("gate-files", "oracle/model.py", "imported by engine/foo/gate.py"),
    ],
)
def test_an_input_tells_why_it_is_one(tmp_path: Path, unit: str, path: str, reason: str) -> None:
    world(tmp_path)
    assert reasons(inputs(tmp_path)[unit])[path] == reason


def test_of_several_chains_of_imports_the_shortest_is_told(tmp_path: Path) -> None:
    repo, start = world(tmp_path)
    chain: dict[str, Content] = {
        "engine/foo/attention.py": "from engine.foo import a, c\n",
        "engine/foo/a.py": "from engine.foo import end\n",
        "engine/foo/c.py": "from engine.foo import d\n",
        "engine/foo/d.py": "from engine.foo import end\n",
        "engine/foo/end.py": "",
    }
    repo.commit("topic", chain, parent=start)
    told = reasons(inputs(tmp_path, "topic")["core"])
    assert told["engine/foo/end.py"] == "imported by engine/foo/a.py"


def test_a_mode_counts_and_a_file_that_nobody_lists_does_not(tmp_path: Path) -> None:
    repo, start = world(tmp_path)
    executable = File(SOURCES["engine/foo/near.py"], "100755")
    digests, tests, _ = changed_units(tmp_path, repo, start, {"engine/foo/near.py": executable})
    assert (digests, tests) == ({"helper", "rest", "path"}, set())
    new = {"engine/new.py": "", "tests/new/conftest.py": "", "manifests/evidence/x": "y"}
    assert changed_units(tmp_path, repo, start, new) == (set(), set(), set())


def test_neither_the_manifest_nor_the_policy_is_an_input(tmp_path: Path) -> None:
    repo, start = world(tmp_path)
    edits = {path: text + "# a comment\n" for path, text in lane().items()}
    assert changed_units(tmp_path, repo, start, edits) == (set(), set(), set())


def test_other_commits_of_the_same_files_and_other_object_formats_give_the_same(
    tmp_path: Path,
) -> None:
    repo, start = world(tmp_path / "one")
    middle = repo.commit("other", {"engine/scheduler.py": "X = 1\n"}, parent=start)
    repo.commit("rebased", {"engine/foo/shared.py": "import torch, sys\n"}, parent=middle)
    repo.commit("topic", {"engine/foo/shared.py": "import torch, sys\n"}, parent=start)
    world(tmp_path / "two", object_format="sha256")
    assert inputs(tmp_path / "one", "rebased") == inputs(tmp_path / "one", "topic")
    assert inputs(tmp_path / "one") == inputs(tmp_path / "two")


def test_a_change_has_the_inputs_of_the_commit_that_merging_it_makes(tmp_path: Path) -> None:
    repo, start = world(tmp_path)
    tip: dict[str, Content] = {"engine/foo/shared.py": "import engine.foo.late\n"}
    change: dict[str, Content] = {"engine/foo/late.py": "X = 1\n"}
    repo.commit("topic", change, parent=start)
    repo.commit("main", tip, parent=start)
    repo.commit("merged", tip | change, parent=start)
    with read_change(tmp_path, head="topic") as read:
        config = read_config(read, folder=None, policy_file=None)
        manifest = read_base_manifests(read, config).named(None)
        of_change = InputGraph(read, judged_or_head(read), manifest, config)
        found = {unit: of_change.unit_inputs(unit) for unit in of_change.units}
    assert found == inputs(tmp_path, "merged")
    assert "engine/foo/late.py" in reasons(found["core"])


@pytest.mark.parametrize(
    ("path", "content", "units"),
    [
        ("engine/foo/late.py", Symlink("near.py"), set(WANTED)),
        ("engine/foo/linked", Gitlink("1" * 40), set(WANTED)),
        ("tests/harness.py", Symlink("fixtures.py"), {"core", "path"}),
        ("engine/ops.py", Symlink("deep.py"), {"core", "helper", "rest", "path"}),
        ("engine/sampling.py", Symlink("deep.py"), set(WANTED) - {"helper"}),
        ("docs/linked", Symlink("foo.md"), set()),
    ],
)
def test_a_link_among_the_inputs_or_in_the_roots_is_refused_by_name(
    tmp_path: Path, path: str, content: Content, units: set[str]
) -> None:
    repo, start = world(tmp_path)
    repo.commit("topic", {path: content}, parent=start)
    with graph(tmp_path, "topic") as found:
        for unit in units:
            with pytest.raises(FactUnavailable, match=f"^{path} is a "):
                found.unit_inputs(unit)
        for unit in set(WANTED) - units:
            assert found.unit_inputs(unit).digest


def test_a_file_that_is_called_like_a_pattern_hides_no_other(tmp_path: Path) -> None:
    repo, start = world(tmp_path)
    repo.commit("topic", {"engine/foo/**": "", "engine/foo/*.cu": ""}, parent=start)
    found = inputs(tmp_path, "topic")
    assert paths(found["rest"])[0] >= WANTED["rest"][0] | {"engine/foo/**", "engine/foo/*.cu"}
    assert "engine/foo/kernel.cu" in paths(found["core"])[0]


def test_of_a_source_that_nobody_can_read_every_root_file_is_an_input(tmp_path: Path) -> None:
    repo, start = world(tmp_path)
    repo.commit("topic", {"engine/foo/helper.py": "def (:\n"}, parent=start)
    found = inputs(tmp_path, "topic")["helper"]
    assert paths(found)[0] == ROOT_FILES
    assert reasons(found)["engine/foo/late.py"] == "perhaps loaded by engine/foo/helper.py"


def test_paths_that_are_no_text_are_inputs_as_well(tmp_path: Path) -> None:
    repo, start = world(tmp_path)
    odd = b"engine/foo/\xff.py".decode("utf-8", "surrogateescape")
    assert changed_units(tmp_path, repo, start, {odd: "X = 1\n"})[0] == {"rest", "path"}


def evidence_inputs(where: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    command.main(["inputs", "--repo", str(where), *arguments], standalone_mode=False)
    return capsys.readouterr().out


def test_the_command_lists_every_input_of_a_commit_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repo, start = world(tmp_path)
    repo.commit("topic", {"engine/foo/shared.py": "X = 1\n"}, parent=start)
    (tmp_path / "engine/foo").mkdir(parents=True)
    (tmp_path / "engine/foo/attention.py").write_text("the working tree is not asked\n")
    for head in ("main", "topic"):
        core = inputs(tmp_path, head)["core"]
        listed = json.loads(evidence_inputs(tmp_path, capsys, "core", "--head", head,
                                            "--format=json"))  # fmt: skip
        assert (listed["digest"], listed["tests_digest"]) == (core.digest, core.tests_digest)
        text = evidence_inputs(tmp_path, capsys, "core", "--head", head)
        for kind in ("files", "tests", "boundary"):
            assert listed[kind] == [vars(file) for file in getattr(core, kind)]
            for file in listed[kind]:
                assert f"  {file['path']}\n    {file['reason']}\n" in text
        assert core.digest in text
        assert core.tests_digest in text
    assert evidence_inputs(tmp_path, capsys, "core") == evidence_inputs(
        tmp_path, capsys, "core", "--head", "refs/heads/main", "--manifest", "foo"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["other"], "one of core, helper, rest, path, gate-files"),
        (["core", "--manifest", "bar"], "one of foo"),
        (["core", "--head", "nowhere"], "no commit nowhere"),
        (["core", "--head", "linked"], "engine/foo/late.py is a symbolic link"),
        (["core", "--config-dir", "elsewhere"], "no policy at"),
    ],
)
def test_the_command_says_what_it_would_accept(
    tmp_path: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    repo, start = world(tmp_path)
    repo.commit("linked", {"engine/foo/late.py": Symlink("near.py")}, parent=start)
    with pytest.raises(InputError, match=said):
        evidence_inputs(tmp_path, capsys, *arguments)
