# SPDX-License-Identifier: Apache-2.0
"""One revision without a change, and the contents of many files at once."""

from pathlib import Path

import pytest

from fasttrack.change.read import read_revision
from fasttrack.change.tree import Side
from fasttrack.errors import FactUnavailable, InputError
from fasttrack.testing import Gitlink, Repo

CONTENTS = {f"f{i:02}": bytes([i]) * (i * 1000) for i in range(40)}


def test_a_revision_is_the_change_of_nothing_and_needs_no_target_branch(tmp_path: Path) -> None:
    repo = Repo(tmp_path, default_branch="trunk")
    first = repo.commit("trunk", {"a": "1"})
    repo.commit("trunk", {"a": "2", "b": "3"})
    with read_revision(tmp_path) as change:
        assert change.entries == ()
        assert list(change.base) == list(change.head_files) == list(change.judged) == ["a", "b"]
    with read_revision(tmp_path, first) as change:
        assert change.base_tip == change.head == first
        assert list(change.base) == ["a"]
    with pytest.raises(InputError, match="no commit nowhere"):
        read_revision(tmp_path, "nowhere")


def test_many_contents_come_in_the_order_that_was_asked_for(tmp_path: Path) -> None:
    Repo(tmp_path).commit("main", dict(CONTENTS))
    order = [*reversed(CONTENTS), *CONTENTS, "f07"]
    with read_revision(tmp_path) as change:
        sides = [change.base.get(path) for path in order]
        found = list(change.blobs([side for side in sides if side is not None]))
    assert found == [CONTENTS[path] for path in order]


def test_a_content_that_is_none_or_too_large_or_not_there_is_a_missing_fact(tmp_path: Path) -> None:
    Repo(tmp_path).commit("main", {"a": "1234", "b": Gitlink("1" * 40)})
    with read_revision(tmp_path) as change:
        small, linked = change.base.get("a"), change.base.get("b")
        assert small is not None
        assert linked is not None
        for sides, limit, said in (
            ([small, linked], 4, "submodule"),
            ([small], 3, "at most 3"),
            ([Side("100644", "2" * 40)], 4, "not in this clone"),
        ):
            with pytest.raises(FactUnavailable, match=said):
                list(change.blobs(sides, limit))
