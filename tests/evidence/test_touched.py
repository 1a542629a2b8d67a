# SPDX-License-Identifier: Apache-2.0
"""Which units a change touches: exactly those whose digests it moves."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fasttrack.case import Case
from fasttrack.change.read import read_change
from fasttrack.config import judged_or_head, read_base_manifests, read_config, read_head_manifests
from fasttrack.evidence import owed
from fasttrack.evidence.inputs import UnitInputs
from fasttrack.evidence.touched import touched_units
from fasttrack.evidence.unit_paths import PathGraph, UnitPaths
from fasttrack.testing import Content, Repo, Symlink
from fasttrack.verdict import Request, evaluate
from tests.engine import AS_OF, KERNEL, MANIFEST, POLICY, ROOT, files
from tests.evidence.test_shape import GOES, MORE
from tests.evidence.units import SOURCES, WANTED, inputs, lane

UNITS = """\
units:
  - {id: core, files: [engine/foo/attention.py], tests: ["tests/**"], axes: [rows]}
  - {id: helper, files: [engine/foo/helper.py], tests: ["tests/**"], axes: [rows]}
"""
HELPER = ROOT + "helper.py"


def touched(
    where: Path,
    change: dict[str, Content],
    *,
    base: dict[str, Content] | None = None,
    tip: dict[str, Content] | None = None,
) -> set[object]:
    """Units of the kernel tests that a change owes."""
    own = files()
    before, _, rest = own[MANIFEST].partition("units:")
    after = rest.partition("\nscope:")[2]
    manifest = f"{before}{UNITS}\nscope:{after}".replace("tier: declared", "tier: kernel-tested")
    repo = Repo(where)
    start = repo.commit("main", own | {MANIFEST: manifest, HELPER: "X = 1\n"} | (base or {}))
    repo.commit("topic", change, parent=start)
    if tip is not None:
        repo.commit("main", tip, parent=start)
    coverage = evaluate(Request(where, target="main", head="topic"), AS_OF).coverage
    return {o.cell.values["unit"] for o in coverage.owed if o.cell.kind == "kernel-test"}


def test_a_unit_that_depends_on_nothing_changed_is_left_alone(tmp_path: Path) -> None:
    assert touched(tmp_path, {HELPER: "X = 2\n"}) == {"helper"}


def test_an_import_that_the_target_gained_meanwhile_counts(tmp_path: Path) -> None:
    tip: dict[str, Content] = {KERNEL: "from engine.foo.helper import X\n"}
    assert touched(tmp_path, {HELPER: "X = 2\n"}, tip=tip) == {"core", "helper"}


def test_a_link_in_the_roots_may_stand_for_anything(tmp_path: Path) -> None:
    base: dict[str, Content] = {KERNEL: Symlink("elsewhere.py")}
    assert touched(tmp_path, {HELPER: "X = 2\n"}, base=base) == {"core", "helper"}


def test_what_is_deleted_touches_the_units_that_needed_it(tmp_path: Path) -> None:
    base: dict[str, Content] = {KERNEL: "from engine.foo.helper import X\n"}
    assert touched(tmp_path, {HELPER: None}, base=base) == {"core", "helper"}


# --- the same as the digests, in an engine whose inputs were written down by hand ---


NO_FILES: Mapping[str, Content] = MappingProxyType({})
HELPER_RUNS = "tests: [tests/foo/test_helper.py]"


class World:
    """The engine of `units`, and changes of it as the branch `topic`."""

    def __init__(self, where: Path, more: Mapping[str, Content] = NO_FILES) -> None:
        self.where = where
        self.repo = Repo(where)
        self.start = self.repo.commit("main", lane() | SOURCES | dict(more))

    def touched(self, change: Mapping[str, Content]) -> dict[str, str]:
        """Unit to reason."""
        self.repo.commit("topic", change, parent=self.start)
        with read_change(self.where, target="main", head="topic") as read:
            config = read_config(read, folder=None, policy_file=None)
            base, head = read_base_manifests(read, config), read_head_manifests(read, config)
            manifest = head.named(None)
            graph = PathGraph(read, judged_or_head(read), manifest, config)
            case = Case(read, config, base, head, AS_OF)
            return dict(touched_units(case, manifest, base.named(None), graph))

    def moved(self) -> set[str]:
        """Units of which the files or the tests have another digest on `topic` than on `main`."""
        before, after = inputs(self.where, "main"), inputs(self.where, "topic")
        return {unit for unit in after if digests(after[unit]) != digests(before.get(unit))}


def digests(found: UnitInputs | None) -> tuple[str, ...]:
    """What statements of a unit bind to."""
    return (found.digest, found.tests_digest) if found else ()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """One for all, as no test changes its `main`."""
    return World(tmp_path_factory.mktemp("world"))


@pytest.mark.parametrize("path", sorted(SOURCES))
def test_a_changed_byte_touches_the_units_that_list_it_and_no_other(
    world: World, path: str
) -> None:
    wanted = {unit for unit, (own, tests, _) in WANTED.items() if path in own | tests}
    assert world.touched({path: SOURCES[path] + "\n"}).keys() == wanted


@pytest.mark.parametrize("path", sorted(SOURCES))
def test_a_file_that_goes_touches_the_units_whose_digests_go_with_it(
    world: World, path: str
) -> None:
    assert world.touched({path: None}).keys() == world.moved()


NEW = [
    "engine/foo/fresh.py",
    "engine/near.py",
    "tests/foo/fresh.py",
    "tests/foo/conftest/__init__.py",
    "tests/other/__init__.py",
    "oracle/fresh.py",
    "oracle/step/__init__.py",
    "foo/__init__.py",
    "torch/__init__.py",
    "vendor/stubs/__init__.py",
    "vendor/__init__.py",
    "__init__.py",
]


@pytest.mark.parametrize("path", NEW)
def test_a_new_file_touches_the_units_whose_digests_it_moves(world: World, path: str) -> None:
    assert world.touched({path: ""}).keys() == world.moved()


EDITS = {
    "another test": ("tests: [tests/foo/test_helper.py]", "tests: [tests/foo/test_gate.py]"),
    "a file more": ("engine/foo/helper.py]", "engine/foo/helper.py, engine/foo/late.py]"),
    "data fewer": (', "engine/sizes/*.json"', ""),
    "an axis more": ("test_helper.py], axes: [rows]", "test_helper.py], axes: [rows, kv_cache]"),
    "another gate": ("engine/foo/gate.py", "engine/foo/late.py"),
    "another lease": ("expires: 2027-01-30", "expires: 2027-01-29"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_manifest_that_gives_other_files_to_a_unit_touches_it(world: World, edit: str) -> None:
    manifest = lane()[MANIFEST]
    assert manifest.count(EDITS[edit][0]) >= 1
    assert world.touched({MANIFEST: manifest.replace(*EDITS[edit])}).keys() == world.moved()


def test_another_root_touches_every_unit(world: World) -> None:
    manifest = lane()[MANIFEST].replace(*MORE).replace(*GOES)
    reasons = world.touched({MANIFEST: manifest})
    assert reasons == dict.fromkeys(world.moved(), "the roots are other ones")
    assert reasons.keys() == WANTED.keys()


def test_a_test_file_that_no_longer_runs_touches_although_it_is_still_needed(
    tmp_path: Path,
) -> None:
    both = lane()[MANIFEST].replace(
        HELPER_RUNS, "tests: [tests/foo/more.py, tests/foo/test_helper.py]"
    )
    fewer = lane()[MANIFEST].replace(HELPER_RUNS, "tests: [tests/foo/more.py]")
    more = {"tests/foo/more.py": 'NEEDS = "tests/foo/test_helper.py"\n', MANIFEST: both}
    world = World(tmp_path, more)
    reasons = world.touched({MANIFEST: fewer})
    assert reasons.keys() == world.moved() == {"helper", "path"}
    assert reasons["helper"] == "tests/foo/test_helper.py ran for it, and no longer does"
    again = World(tmp_path / "again", more | {MANIFEST: fewer})
    reasons = again.touched({MANIFEST: both})
    assert reasons["helper"] == "tests/foo/test_helper.py did not run for it, and now does"


@settings(max_examples=30, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(sorted(SOURCES)),
        st.sampled_from([None, "", "import engine.foo.late\n", "from oracle import fresh\n"]),
        min_size=1,
        max_size=4,
    ),
    st.sets(st.sampled_from(NEW), max_size=2),
)
def test_any_change_touches_exactly_the_units_whose_digests_it_moves(
    edits: dict[str, Content], new: set[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        assume(not any(p.startswith(f"{q.removesuffix('.py')}/") for p in new for q in SOURCES))
        change = edits | dict.fromkeys(new, "")
        assert world.touched(change).keys() == world.moved()


REASONS: list[tuple[dict[str, Content], str, str]] = [
    ({"engine/foo/attention.py": "X = 1\n"}, "core", "its file engine/foo/attention.py changed"),
    (
        {"engine/foo/shared.py": ""},
        "core",
        "it depends on a file that changes: engine/foo/shared.py changed",
    ),
    (
        {"tests/harness.py": ""},
        "core",
        "its tests need a file that changes: tests/harness.py changed",
    ),
    ({"oracle/step.py": None}, "core", "it depended on oracle/step.py, which is gone"),
    (
        {"tests/foo/conftest.py": None, "engine/deep.py": ""},
        "helper",
        "it depended on tests/foo/conftest.py, which is gone",
    ),
]


@pytest.mark.parametrize(("change", "unit", "reason"), REASONS)
def test_the_reason_names_the_file(
    world: World, change: dict[str, Content], unit: str, reason: str
) -> None:
    assert world.touched(change)[unit] == reason


BOUNDARIES = ["engine/ops.py", "csrc/common/math.cuh", "engine/sampling.py", "engine/testing.py"]


@pytest.mark.parametrize("path", BOUNDARIES)
def test_a_changed_boundary_touches_only_where_the_policy_calls_it_stale(
    tmp_path: Path, path: str
) -> None:
    world = World(tmp_path)
    assert world.touched({path: ""}) == {}
    strict = lane()[POLICY] + "trust: {boundary: stale}\n"
    world.start = world.repo.commit("main", {POLICY: strict})
    wanted = {unit for unit, (_, _, boundary) in WANTED.items() if path in boundary}
    assert world.touched({path: ""}).keys() == wanted
    assert world.touched({path: None}).keys() == wanted


def test_a_boundary_that_is_borne_is_not_looked_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(UnitPaths, "boundary")
    assert world.touched({"engine/foo/near.py": ""}).keys() == {"helper", "rest", "path"}
    assert world.touched({"engine/foo/near.py": None}).keys() == {"helper", "rest", "path"}


def test_the_reason_of_a_changed_boundary_names_the_file(tmp_path: Path) -> None:
    world = World(tmp_path)
    strict = lane()[POLICY] + "trust: {boundary: stale}\n"
    world.start = world.repo.commit("main", {POLICY: strict})
    assert world.touched({"engine/sampling.py": ""})["core"] == (
        "it or its tests import a file outside the roots that changes: engine/sampling.py changed"
    )


def test_a_folder_that_becomes_a_package_no_longer_lends_its_modules(tmp_path: Path) -> None:
    world = World(tmp_path)
    strict = lane()[POLICY] + "trust: {boundary: stale}\n"
    world.start = world.repo.commit("main", {POLICY: strict})
    wanted = {
        unit for unit, (_, _, boundary) in WANTED.items() if "vendor/stubs/torch.py" in boundary
    }
    assert world.touched({"vendor/stubs/__init__.py": ""}).keys() == wanted


def test_a_module_at_the_top_takes_its_name_from_one_in_a_package(tmp_path: Path) -> None:
    world = World(tmp_path)
    test = {"tests/foo/test_gate.py": "import engine.late\n", "tests/engine/late.py": ""}
    world.start = world.repo.commit("main", test)
    assert world.touched({"tests/engine/late.py": "X = 1\n"}).keys() == {
        "rest",
        "path",
        "gate-files",
    }
    assert world.touched({"engine/late.py": ""}).keys() == {"rest", "path", "gate-files"}
    assert world.touched({"engine/later.py": ""}) == {}


def test_what_the_policy_binds_touches_although_it_lies_outside_the_roots(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.start = world.repo.commit("main", {POLICY: lane(bind="engine/ops.py")[POLICY]})
    assert world.touched({"engine/ops.py": ""}).keys() == {"core", "helper", "rest", "path"}
    world.start = world.repo.commit("main", {POLICY: lane(bind="engine/testing.py")[POLICY]})
    assert world.touched({"engine/testing.py": ""}).keys() == set(WANTED)
    assert world.touched({"engine/ops.py": ""}) == {}


def test_nothing_is_looked_at_when_no_region_owes_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    World(tmp_path).touched({KERNEL: ""})
    monkeypatch.setattr(owed, "touched_units", None)
    assert evaluate(Request(tmp_path, target="main", head="topic"), AS_OF).coverage.owed == ()
