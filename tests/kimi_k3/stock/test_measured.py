# SPDX-License-Identifier: Apache-2.0
"""What `docs/stock.md` promises of the measured stock path, held against the stored measurements.

They were made on a GPU by `tests/bench`; here they are only read, so that nobody can store slower
ones beside the old words.
"""

import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[3] / "docs"
MOST_OPERATIONS = 23
"""Of a KDA + MoE layer at one row, counting one more where a library sums over ranks."""
SLOWEST = 1.05
"""Times what the plain call took earlier."""


def record(name: str) -> Any:
    return json.loads((DOCS / name).read_text("utf-8"))


def test_a_layer_at_one_row_makes_no_more_operations_than_a_good_engine() -> None:
    layers = {
        row["tp"]: row["operations"]
        for row in record("stock-layers.json")["rows"]
        if (row["kind"], row["rows"]) == ("kda+moe", 1)
    }
    assert layers.keys() == {8, 16}
    assert all(operations + 1 <= MOST_OPERATIONS for operations in layers.values())


def test_every_layer_was_measured_at_every_size() -> None:
    rows = record("stock-layers.json")["rows"]
    sizes = {(row["kind"], row["tp"], row["rows"]) for row in rows}
    assert sizes == {
        (kind, tp, m) for kind in ("kda+moe", "mla+moe") for tp in (8, 16) for m in (1, 8, 64)
    }
    assert all(row["floor_us"] < row["low_us"] <= row["median_us"] for row in rows)


def test_no_operation_is_slower_than_the_plain_call_was() -> None:
    held = [o for o in record("stock-layers.json")["operations"] if o["earlier_us"] is not None]
    assert len(held) == 36
    slow = [o for o in held if o["median_us"] > SLOWEST * o["earlier_us"]]
    assert slow == []


def test_the_experts_reach_what_the_page_says_of_their_floor() -> None:
    chains = {
        (row["tp"], row["rows"]): row["of_floor"]
        for row in record("stock-experts.json")["timings"]
        if row["kernel"] == "chain"
    }
    assert min(chains.values()) >= 0.4
    assert all(chains[tp, 64] >= 0.6 for tp in (8, 16))
