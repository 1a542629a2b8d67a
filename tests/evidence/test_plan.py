# SPDX-License-Identifier: Apache-2.0
"""Plans as files: what is read, what is refused, and how a directory is compared with one."""

import copy
import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fasttrack.errors import InputError
from fasttrack.evidence.digest import InputFile, files_digest
from fasttrack.evidence.in_tree import compare
from fasttrack.evidence.plan import (
    MAX_BYTES,
    Plan,
    PlannedFloors,
    parse_plan,
    read_plan,
    write_plan,
)
from fasttrack.policy.model import Floors
from tests.evidence.plans import engine, plan_of, write_files

Place = tuple[str | int, ...]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return plan_of(tmp_path_factory.mktemp("repo"))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    write_files(tmp_path, engine())
    return tmp_path


def objects(value: Any, at: Place = ()) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Every JSON object with its place; of equal records in a list only the first."""
    if isinstance(value, dict):
        yield at, value
        for name, inner in value.items():
            yield from objects(inner, (*at, name))
    if isinstance(value, list) and value:
        yield from objects(value[0], (*at, 0))


def inside(data: Any, place: Place) -> Any:
    for step in place:
        data = data[step]
    return data


def refused(data: Any) -> str:
    with pytest.raises(InputError) as error:
        parse_plan(json.dumps(data).encode(), "plan.json")
    return str(error.value)


def test_a_plan_that_was_written_is_read_as_it_was(plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    write_plan(plan, path)
    assert read_plan(path) == plan
    assert path.read_bytes() == plan.to_bytes()
    assert list(tmp_path.iterdir()) == [path]


def test_a_plan_that_can_not_be_written_leaves_the_one_that_was_there(
    plan: Plan, tmp_path: Path
) -> None:
    (tmp_path / "plan.json").mkdir()
    with pytest.raises(InputError):
        write_plan(plan, tmp_path / "plan.json")
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_a_plan_without_any_one_of_its_fields_is_refused(plan: Plan) -> None:
    whole = json.loads(plan.to_bytes())
    fields = [
        (place, name)
        for place, found in objects(whole)
        if place[-1:] not in {("values",), ("archs",)}
        for name in found
    ]
    assert len(fields) > 30
    for place, name in fields:
        data = copy.deepcopy(whole)
        del inside(data, place)[name]
        assert refused(data), (place, name)


def test_a_plan_with_any_one_of_its_keys_twice_is_refused(plan: Plan) -> None:
    whole = json.loads(plan.to_bytes())
    places = [(place, name) for place, found in objects(whole) for name in found]
    for place, name in places:
        data = copy.deepcopy(whole)
        found = inside(data, place)
        value = json.dumps(found[name])
        found["TWICE"] = 0
        text = json.dumps(data).replace('"TWICE": 0', f"{json.dumps(name)}: {value}")
        with pytest.raises(InputError, match="twice"):
            parse_plan(text.encode(), "plan.json")


def test_a_plan_with_an_unknown_key_anywhere_is_refused(plan: Plan) -> None:
    whole = json.loads(plan.to_bytes())
    for place, _ in objects(whole):
        if place[-1:] not in {("values",), ("archs",)}:
            data = copy.deepcopy(whole)
            inside(data, place)["more"] = 1
            assert "Extra inputs are not permitted" in refused(data)


def seeded(data: Any) -> Any:
    return next(cell for cell in data["cells"] if cell["kind"] == "kernel-test")


def first(data: Any) -> Any:
    return data["units"][0]


EDITS = {
    "another version of the format": (lambda d: d.update(plan=2), "plan"),
    "true as the version": (lambda d: d.update(plan=True), "plan"),
    "half a second": (lambda d: d.update(created="2026-11-29T12:00:00.5Z"), "whole second"),
    "a time without a zone": (lambda d: d.update(created="2026-11-29T12:00:00"), "in UTC"),
    "another zone": (lambda d: d.update(created="2026-11-29T12:00:00+01:00"), "in UTC"),
    "an id that is too short": (lambda d: d.update(id="ab"), "id"),
    "a cell twice": (lambda d: d["cells"].append(d["cells"][0]), "twice"),
    "a cell of a unit that is not listed": (lambda d: d["units"].pop(0), "not listed"),
    "a unit without cells": (lambda d: d.update(cells=[]), "no cell of the unit"),
    "a unit twice": (lambda d: d["units"].append(first(d)), "twice"),
    "files out of order": (lambda d: first(d)["files"].reverse(), "out of order"),
    "a file twice": (lambda d: first(d)["files"].append(first(d)["files"][-1]), "or twice"),
    "another digest": (lambda d: first(d).update(digest="0" * 64), "not its files"),
    "another digest of the tests": (lambda d: first(d).update(tests_digest="0" * 64), "not its"),
    "a link": (lambda d: first(d)["files"][0].update(mode="120000"), "mode"),
    "a path that leaves": (lambda d: first(d)["files"][0].update(path="../a"), "path"),
    "no tests to run": (lambda d: d["cells"][0].update(tests=[]), "tests"),
    "a test that is none of the unit's": (
        lambda d: d["cells"][0].update(tests=["engine/ops.py"]),
        "none of the unit's",
    ),
    "a test twice": (lambda d: d["cells"][0].update(tests=d["cells"][0]["tests"] * 2), "twice"),
    "too few seeds": (lambda d: seeded(d)["seeds"].pop(), "2 seeds"),
    "a seed twice": (lambda d: seeded(d).update(seeds=[1, 1, 2]), "a seed twice"),
    "seeds that nothing uses": (lambda d: d["cells"][0].update(seeds=[1]), "1 seeds"),
    "a seed as text": (lambda d: seeded(d).update(seeds=["1", "2", "3"]), "seeds"),
    "a unit of which the cell does not speak": (
        lambda d: seeded(d).update(unit=next(u["unit"] for u in d["units"] if "gate" in u["unit"])),
        "does not speak",
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_plan_that_contradicts_itself_is_refused(plan: Plan, name: str) -> None:
    edit, said = EDITS[name]
    data = json.loads(plan.to_bytes())
    edit(data)
    assert said in refused(data)


def test_one_path_has_one_content_in_all_units(plan: Plan) -> None:
    data = json.loads(plan.to_bytes())
    shared = next(
        path
        for path in {file["path"] for file in first(data)["files"]}
        if any(f["path"] == path for unit in data["units"][1:] for f in unit["files"])
    )
    for file in first(data)["files"]:
        if file["path"] == shared:
            file["sha256"] = "0" * 64
    listed = [InputFile(**file, reason="") for file in first(data)["files"]]
    first(data)["digest"] = files_digest(listed)
    assert f"{shared} with two contents" in refused(data)


@pytest.mark.parametrize(
    "raw",
    [b"", b"[]", b"{", b"\xff", b'{"plan": NaN}', b"[" * 100_000, b" " * (MAX_BYTES + 1)],
    ids=["empty", "list", "half", "bytes", "nan", "deep", "large"],
)
def test_what_is_no_plan_is_refused(raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(raw)
    with pytest.raises(InputError):
        read_plan(path)


def test_a_plan_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_plan(tmp_path / "plan.json")


def test_a_plan_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "plan.json")
    with pytest.raises(InputError, match="saw no plain file"):
        read_plan(tmp_path / "plan.json")


def test_a_plan_holds_every_floor_of_the_policy() -> None:
    assert set(PlannedFloors.model_fields) == set(Floors.model_fields)


def listed(plan: Plan) -> list[str]:
    paths = {f.path for unit in plan.units for f in (*unit.files, *unit.tests, *unit.boundary)}
    assert len(paths) > 20
    return sorted(paths)


def test_the_tree_of_the_plan_has_no_difference(plan: Plan, tree: Path) -> None:
    assert compare(plan, tree) == []


def test_one_byte_of_any_listed_file_is_a_difference_of_that_file(plan: Plan, tree: Path) -> None:
    for path in listed(plan):
        before = (tree / path).read_bytes()
        (tree / path).write_bytes(before + b"#")
        (problem,) = compare(plan, tree)
        assert (problem.where, problem.saw) == (path, "other bytes")
        command, _, _ = problem.fix.partition(",")
        assert shlex.split(command) == ["git", "checkout", plan.commit[:12], "--", path]
        (tree / path).write_bytes(before)
    assert compare(plan, tree) == []


def test_a_listed_file_that_is_missing_or_something_else_is_named(plan: Plan, tree: Path) -> None:
    for path in listed(plan):
        here, kept = tree / path, tree / "kept"
        here.rename(kept)
        assert [(p.where, p.saw) for p in compare(plan, tree)] == [(path, "no such file")]
        here.symlink_to(kept)
        assert [(p.where, p.saw) for p in compare(plan, tree)] == [(path, "a symbolic link")]
        here.unlink()
        os.mkfifo(here)
        assert [(p.where, p.saw) for p in compare(plan, tree)] == [(path, "no regular file")]
        here.unlink()
        kept.rename(here)


def test_a_folder_behind_a_link_is_not_followed(plan: Plan, tree: Path) -> None:
    (tree / "oracle").rename(tree / "elsewhere")
    (tree / "oracle").symlink_to("elsewhere")
    found = {problem.where: problem.saw for problem in compare(plan, tree)}
    assert found == {
        path: "a symbolic link at oracle" for path in listed(plan) if path.startswith("oracle/")
    }


def test_of_a_mode_only_the_owners_executable_bit_counts(plan: Plan, tree: Path) -> None:
    path = "engine/foo/attention.py"
    for mode, said in ((0o600, []), (0o666, []), (0o654, []), (0o744, ["an executable file"])):
        (tree / path).chmod(mode)
        assert [problem.saw for problem in compare(plan, tree)] == said


CONFTESTS = ("conftest.py", "tests/conftest.py", "tests/foo/conftest.py")


@pytest.mark.parametrize("link", [False, True])
def test_a_conftest_above_a_test_that_is_not_listed_is_named(tmp_path: Path, link: bool) -> None:
    files = {path: text for path, text in engine().items() if path not in CONFTESTS}
    plan, tree = plan_of(tmp_path / "repo", files), tmp_path / "tree"
    write_files(tree, files)
    assert compare(plan, tree) == []
    for path in CONFTESTS:
        if link:
            (tree / path).symlink_to("nowhere")
        else:
            (tree / path).write_text("", "utf-8")
    found = [(problem.where, problem.saw) for problem in compare(plan, tree)]
    assert found == [(path, "a file that the plan does not have") for path in CONFTESTS]


def test_files_that_are_not_listed_may_differ(plan: Plan, tree: Path) -> None:
    (tree / "docs/foo.md").write_text("other words\n", "utf-8")
    (tree / "new.py").write_text("", "utf-8")
    (tree / "docs/conftest.py").write_text("", "utf-8")
    assert compare(plan, tree) == []
