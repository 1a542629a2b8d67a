# SPDX-License-Identifier: Apache-2.0
"""What a statement tells of files that no digest holds."""

from hashlib import sha256
from pathlib import Path

from fasttrack.evidence.plan import PlannedUnit
from fasttrack.evidence.predicates.common import BoundaryFile
from fasttrack.evidence.used import MAX_BOUNDARY, own_places, replaced, used_files
from tests.evidence.collecting import collect, content, report, settings_of
from tests.evidence.scratch import HEAD, SOURCE, TEST, UNIT, plan_of, planned, project, write

FILES = {
    "deep.py": "N = 1\n",
    "near.so": "",
    "odd.txt": "",
    "more/conftest.py": "",
    "manifests/a.yaml": "a: 1\n",
    "beacon/extra.py": "",
}


def used(root: Path, **changes: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Boundary and undeclared files of a run that used these."""
    project(root, "", **FILES)
    plan = plan_of(root, [planned(1)])
    boundary, undeclared = used_files(plan, plan.unit(UNIT), report(**changes), root)
    texts = {file.path: (root / file.path).read_bytes() for file in boundary}
    assert all(file.sha256 == sha256(texts[file.path]).hexdigest() for file in boundary)
    return tuple(texts), undeclared


def test_modules_and_configuration_are_told_and_all_else_is_undeclared(tmp_path: Path) -> None:
    imported = ("deep.py", SOURCE, TEST, "beacon/extra.py", "more/conftest.py", "odd.txt")
    opened = ("manifests/a.yaml", "pyproject.toml", "data.json")
    assert used(tmp_path, imported=imported, opened=opened) == (
        ("deep.py", "manifests/a.yaml", "pyproject.toml"),
        ("beacon/extra.py", "data.json", "more/conftest.py", "odd.txt"),
    )


def test_what_git_does_not_have_is_the_runners(tmp_path: Path) -> None:
    built = ("built.py", "native.so")
    assert used(tmp_path, imported=built, opened=("manifests/effective.json",)) == ((), ())


def test_a_link_and_a_file_that_is_gone_can_not_be_told(tmp_path: Path) -> None:
    root = project(tmp_path, "", **FILES)
    plan = plan_of(root, [planned(1)], beside=["deep.py", "gone.py", "link.py", "to/deep.py"])
    (root / "link.py").symlink_to("deep.py")
    (root / "to").symlink_to(".")
    seen = report(imported=("deep.py", "gone.py", "link.py", "to/deep.py"))
    boundary, undeclared = used_files(plan, plan.unit(UNIT), seen, root)
    assert [file.path for file in boundary] == ["deep.py"]
    assert undeclared == ("gone.py", "link.py", "to/deep.py")


def test_more_files_than_a_statement_holds_are_undeclared(tmp_path: Path) -> None:
    root = project(tmp_path, "", **FILES)
    plan = plan_of(root, [planned(1)])
    full = tuple(BoundaryFile(path=f"n/{i}.py", sha256="0" * 64) for i in range(MAX_BOUNDARY))
    unit = plan.unit(UNIT).model_copy(update={"boundary": full})
    boundary, undeclared = used_files(plan, unit, report(imported=("deep.py",)), root)
    assert (boundary, undeclared) == (full, ("deep.py",))


def test_another_file_in_the_place_of_one_that_binds_is_a_failure(tmp_path: Path) -> None:
    root = project(tmp_path, "")
    unit: PlannedUnit = plan_of(root, [planned(1)]).unit(UNIT)
    told = [*replaced(unit, report(replaced=("other.py", SOURCE)))]
    assert told == [f"another file than {SOURCE} was imported in its place"]


def test_packages_of_a_unit_begin_at_most_three_folders_down() -> None:
    unit = PlannedUnit.model_construct(
        files=(BoundaryFile(path="a/b/c/d/e.py", sha256="0" * 64),),
        tests=(BoundaryFile(path="t.py", sha256="0" * 64),),
        boundary=(),
    )
    assert own_places(unit) == ("a", "a/b", "a/b/c", "t.py")


def test_a_run_tells_the_bytes_of_what_it_imports_in_every_cell(tmp_path: Path) -> None:
    body = """
def test_it(fasttrack_cell, fasttrack_seeds, fasttrack_record):
    import deep, sys
    del sys.modules["deep"]
    import deep
    fasttrack_record.launched("smooth")
"""
    root = project(tmp_path / "project", HEAD + body, **{"deep.py": "N = 1\n", "other.py": ""})
    write(root, {"iniconfig.py": "raise SystemExit\n"})
    plan = plan_of(root, [planned(1), planned(2)])
    collect(plan, settings_of(root, tmp_path / "out"))
    deep = BoundaryFile(path="deep.py", sha256=sha256(b"N = 1\n").hexdigest())
    for statement in content(tmp_path / "out"):
        assert statement.problems() == []
        assert statement.predicate.inputs.boundary == (deep,)
