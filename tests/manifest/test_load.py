# SPDX-License-Identifier: Apache-2.0
"""Every error of a manifest, at its line and column, all in one pass."""

import json
from typing import Any

import pytest

from fasttrack.errors import InputError
from fasttrack.manifest.load import load_manifest
from fasttrack.manifest.model import Manifest, Region
from fasttrack.vocabulary import Tier

from .builders import VALID, valid
from .edits import cases, edited, place

ERRORS = cases("errors.yaml")
ONE_ROW = "workload: {rows: 1, context: 1024, acceptance: none}"
DRAFTS = "workload: {{rows: 4, context: 1024, draft_tokens: 3, acceptance: synthetic, {}}}"


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


@pytest.mark.parametrize(
    "edit",
    [
        {"from": "{min: 1, max: 8}", "to": "{min: 8, max: 8}"},
        {"from": "draft_tokens: [0, 3, 7]", "to": "draft_tokens: [63]"},
        {"from": "expires: 2026-07-10", "to": "expires: 2026-01-11"},
        {"from": "drop_max: 0.01", "to": "drop_max: 1"},
        {"from": ONE_ROW, "to": DRAFTS.format("acceptance_length: 4")},
        {"from": ONE_ROW, "to": DRAFTS.format("acceptance_length: 1")},
        {"from": ONE_ROW, "to": DRAFTS.format("acceptance_rates: [1, 1, 0]")},
    ],
)
def test_the_last_value_inside_a_bound_is_accepted(edit: dict[str, str]) -> None:
    load_manifest(edited([edit]), "m.yaml")


def test_an_empty_list_is_refused_by_the_model_too() -> None:
    data = valid().scope[0].model_dump(mode="json") | {"hardware": []}
    with pytest.raises(ValueError, match="at least one item"):
        Region.model_validate_json(json.dumps(data))


@pytest.mark.parametrize("text", ["[]", "1", "a: {}", "scope: 3\nunits: {}\ncode: [1]\nlease: x"])
def test_other_shapes_are_input_errors(text: str) -> None:
    with pytest.raises(InputError):
        load_manifest(text, "m.yaml")


def test_a_list_of_many_thousand_items_is_refused() -> None:
    many = ", ".join(f"gpu{i}" for i in range(5000))
    with pytest.raises(InputError, match="at most 64"):
        load_manifest(VALID.replace("[gb300]", f"[{many}]", 1), "m.yaml")
