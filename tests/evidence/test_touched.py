# SPDX-License-Identifier: Apache-2.0
"""Which units a change touches, in repositories whose target branch moved on meanwhile."""

from pathlib import Path

from fasttrack.testing import Content, Repo, Symlink
from fasttrack.verdict import Request, evaluate
from tests.engine import AS_OF, KERNEL, MANIFEST, ROOT, files

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
    owed = evaluate(Request(where, target="main", head="topic"), AS_OF).coverage.owed
    return {o.cell.values["unit"] for o in owed if o.cell.kind == "kernel-test"}


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
