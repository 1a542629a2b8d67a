# SPDX-License-Identifier: Apache-2.0
"""The table that follows from measured times, and the table that is there."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.errors import InputError
from fasttrack.manifest.variants import load_variant_table, switch_points
from kimi_k3.config import full
from kimi_k3.decode.kernels.attn_res.shape import Form, Tiling, launch_shape, operands
from kimi_k3.decode.kernels.attn_res.table import (
    ARCHS,
    FORMS,
    TENSOR_PARALLEL,
    TILINGS,
    Choice,
    choices_of,
    table,
    table_text,
)
from kimi_k3.decode.kernels.build import HERE
from kimi_k3.decode.kernels.tune import ROWS, choices, require_gpu

FAST, SLOW = (7, 1), (2, 2)
MEASURED = Path(__file__).resolve().parents[4] / "docs" / "attn-res.json"
TEXT = (HERE / "attn_res" / "variants.json").read_text(encoding="utf-8")


def times(*few_to_many: float) -> dict[int, dict[tuple[int, int], float]]:
    """`SLOW` takes 1 everywhere, `FAST` what is given."""
    return {rows: {FAST: us, SLOW: 1.0} for rows, us in zip(ROWS, few_to_many, strict=True)}


@pytest.mark.parametrize(
    ("measured", "want"),
    [
        (times(0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5), (Choice((1, 64), *FAST),)),
        (times(2, 2, 2, 2, 2, 2, 2), (Choice((1, 64), *SLOW),)),
        (times(0.5, 0.5, 0.5, 0.5, 0.9, 2, 2), (Choice((1, 16), *FAST), Choice((17, 64), *SLOW))),
        (times(2, 2, 0.5, 0.5, 0.5, 0.5, 0.5), (Choice((1, 2), *SLOW), Choice((3, 64), *FAST))),
        (times(0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 1.009), (Choice((1, 64), *FAST),)),
        (
            times(0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 1.011),
            (Choice((1, 32), *FAST), Choice((33, 64), *SLOW)),
        ),
    ],
    ids=["one", "the other", "it changes", "it changes back", "not worth it", "just worth it"],
)
def test_each_range_of_rows_has_its_fastest_tiling(
    measured: Mapping[int, Mapping[tuple[int, int], float]], want: tuple[Choice, ...]
) -> None:
    assert choices(measured) == want


@given(st.lists(st.lists(st.floats(1, 9), min_size=3, max_size=3), min_size=7, max_size=7))
def test_two_ranges_are_never_slower_than_the_best_single_one(drawn: list[list[float]]) -> None:
    measured = {
        rows: dict(zip(TILINGS, row, strict=False)) for rows, row in zip(ROWS, drawn, strict=True)
    }
    found = choices(measured)

    def cost(chosen: tuple[Choice, ...]) -> float:
        total = 0.0
        for rows, own in measured.items():
            (one,) = (c for c in chosen if c.rows[0] <= rows <= c.rows[1])
            total += own[one.cluster, one.vectors] / min(own.values())
        return total

    single = min(cost((Choice((1, 64), *tiling),)) for tiling in TILINGS[:3])
    assert cost(found) <= single * (1 + 1e-9)
    table(full(), found)  # covers every row


def test_the_table_is_what_tune_writes_of_its_own_tilings() -> None:
    rows = load_variant_table(TEXT, "variants.json").variants
    chosen = choices_of([row.model_dump() for row in rows])
    assert table_text(table(full(), chosen)) == TEXT
    assert len(rows) == len(ARCHS) * len(TENSOR_PARALLEL) * len(FORMS) * len(chosen)
    assert switch_points(load_variant_table(TEXT, "")) == tuple(c.rows[0] for c in chosen[1:])


def test_the_table_follows_from_what_was_measured() -> None:
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))["tilings"]
    by_rows = {
        int(rows): {(int(c), int(v)): us for c, v, us in own} for rows, own in measured.items()
    }
    rows = load_variant_table(TEXT, "variants.json").variants
    assert choices(by_rows) == choices_of([row.model_dump() for row in rows])


def test_a_table_that_leaves_rows_out_is_refused() -> None:
    with pytest.raises(ValueError, match="want 1 to 64"):
        table(full(), [Choice((1, 32), *FAST), Choice((34, 64), *SLOW)])


@pytest.mark.parametrize("tiling", TILINGS)
def test_every_tiling_that_is_compared_divides_the_model(tiling: tuple[int, int]) -> None:
    Tiling(full().hidden_size, *tiling).require()


@pytest.mark.parametrize(
    ("tiling", "told"), [((5, 1), "5 blocks"), ((7, 3), "7 blocks"), ((1, 1), "28"), ((14, 1), "")]
)
def test_a_tiling_that_does_not_go_round_is_refused(tiling: tuple[int, int], told: str) -> None:
    whole = Tiling(8192 if not told else full().hidden_size, *tiling)
    if told == "28":
        whole.require()
        assert whole.senders == 28
        return
    with pytest.raises(ValueError, match=told or "14 blocks"):
        whole.require()


def test_a_row_of_too_many_warps_is_refused() -> None:
    with pytest.raises(ValueError, match="64 warps of a row; at most 32"):
        Tiling(16384, 1, 1).require()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"most": 16, "room": 16}, "16 blocks of 16; at most 15"),
        ({"most": 9}, "9 blocks of 8"),
        ({"arrives": "delta"}, "a mailbox brings delta"),
        ({"arrives": "norm"}, "a mailbox brings norm"),
    ],
    ids=["too many sources", "no such room", "nothing to add", "no such operand"],
)
def test_a_form_that_can_not_be_computed_is_refused(change: dict[str, object], told: str) -> None:
    plain = dict(FORMS["plain"]) | {"room": 8, "most": 8}
    with pytest.raises(ValueError, match=told):
        Form.of(plain | change).require()


@pytest.mark.parametrize("form", FORMS)
def test_operands_and_launch_follow_from_a_row_alone(form: str) -> None:
    parameters = {"hidden": 7168, "room": 8, "most": 8, "cluster": 7, "vectors": 1}
    found = [one.name for one in operands(parameters | dict(FORMS[form]))]
    assert ("norm" in found) is (form != "last")
    assert ("blocks" in found) is ("saved" in found) is (form != "first")
    assert ("mailbox" in found) is form.endswith("mailbox")
    assert found.count("out") == 1
    shape = launch_shape(parameters | dict(FORMS[form]))
    assert shape.grid_of(5) == (7, 5, 1)
    assert (shape.block * shape.cluster * 8, shape.cooperative) == (7168, False)


def test_without_a_gpu_nothing_is_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="saw no GPU; want the GPU to tune for"):
        require_gpu()
