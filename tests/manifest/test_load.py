# SPDX-License-Identifier: Apache-2.0
"""Every error of a manifest, at its line and column, all in one pass."""

from typing import Any

import pytest

from fasttrack.errors import InputError
from fasttrack.manifest.load import load_manifest
from fasttrack.manifest.model import Manifest
from fasttrack.vocabulary import Tier

from .builders import VALID, valid
from .edits import cases, edited, place

ERRORS = cases("errors.yaml")


@pytest.mark.parametrize("case", ERRORS, ids=[case["why"] for case in ERRORS])
def test_each_error_is_reported_at_its_place_and_nothing_else_is(case: dict[str, Any]) -> None:
    text = edited(case["edit"])
    with pytest.raises(InputError) as caught:
        load_manifest(text, "m.yaml")
    found = {(p.where, p.saw) for p in caught.value.problems}
    for want in case["expect"]:
        where = f"m.yaml:{place(text, want['at'])}"
        here = [(w, saw) for w, saw in found if w == where and want["saw"] in saw]
        assert here, f"want {where} {want['saw']!r}, found {sorted(found)}"
        found -= set(here)
    assert not found


def test_a_valid_manifest_is_read_into_words_dates_and_tuples() -> None:
    m = valid()
    assert isinstance(m, Manifest)
    assert m.scope[0].tier is Tier.COMPILED
    assert m.lease.expires.isoformat() == "2026-07-10"
    assert m.scope[0].draft_tokens == (0, 3, 7)
    assert load_manifest(VALID.encode(), "valid.yaml") == m


def test_what_may_be_absent_is_empty() -> None:
    without = [
        {"from": VALID[VALID.index("  wiring:\n    - path") : VALID.index("  switch:")], "to": ""},
        {"from": VALID[VALID.index("evidence:") : VALID.index("toolchain:")], "to": ""},
        {"from": VALID[VALID.index("claims:") : VALID.index("lease:")], "to": ""},
        {"from": VALID[VALID.index("waivers:") :], "to": ""},
    ]
    m = load_manifest(edited(without), "m.yaml")
    assert (m.code.wiring, m.claims, m.waivers, m.assisted_by) == ((), (), (), ())
    assert (m.evidence.tests, m.evidence.evals, m.evidence.bars) == ((), (), {})


def test_a_loaded_manifest_can_not_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        valid().scope[0].tier = Tier.SERVED  # type: ignore[misc]


@pytest.mark.parametrize("text", ["[]", "1", "a: {}", "scope: 3\nunits: {}\ncode: [1]\nlease: x"])
def test_other_shapes_are_input_errors(text: str) -> None:
    with pytest.raises(InputError):
        load_manifest(text, "m.yaml")


def test_a_list_of_many_thousand_items_is_refused() -> None:
    many = ", ".join(f"gpu{i}" for i in range(5000))
    with pytest.raises(InputError, match="at most 64"):
        load_manifest(VALID.replace("[gb300]", f"[{many}]", 1), "m.yaml")
