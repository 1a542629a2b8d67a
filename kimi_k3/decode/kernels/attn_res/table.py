# SPDX-License-Identifier: Apache-2.0
"""The variant table of the residual mix, as `kimi-k3 kernels tune` writes it.

A form is what a step needs at one place. The table has each of them for every tiling that was
chosen, and for every tensor parallelism and architecture, although code does not depend on ranks.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kimi_k3.config import K3Config
from kimi_k3.decode.kernels.attn_res.shape import MOST_ROWS

ARCHS = ("sm_90a", "sm_100a", "sm_103a")
TENSOR_PARALLEL = (8, 16)
TILINGS = ((7, 1), (7, 2), (14, 1), (4, 1), (2, 1), (2, 2), (1, 2))
"""Blocks that share a row, and vectors of a thread: what `kimi-k3 kernels tune` compares."""
FOLDER = "kimi_k3/decode/kernels/attn_res"

_PLAIN = {"arrives": None, "delta": False, "kept": False, "block": False, "normed": True}
FORMS: Mapping[str, Mapping[str, Any]] = {
    "first": _PLAIN | {"block": True, "most": 0},
    "add": _PLAIN | {"delta": True, "kept": True},
    "block": _PLAIN | {"delta": True, "block": True},
    "plain": _PLAIN,
    "last": _PLAIN | {"delta": True, "kept": True, "normed": False},
    "add-mailbox": _PLAIN | {"arrives": "delta", "delta": True, "kept": True},
    "plain-mailbox": _PLAIN | {"arrives": "prefix", "kept": True},
}
"""Name to what differs, in the order in which a step meets them:

* `first`: the embedding becomes the first block, and is normed;
* `add`: the prefix grows by what the layer before, or attention, has computed;
* `block`: so it does, and is saved as a block;
* `plain`: right after a block write, what attention has computed is the prefix;
* `last`: after the last layer, without a norm;
* `...-mailbox`: the same, of a row that a mailbox brings."""


@dataclass(frozen=True)
class Choice:
    """A tiling for a range of rows.

    Attributes:
        rows: fewest and most.
        cluster: blocks that share a row.
        vectors: 16-byte vectors of each source that a thread holds.
    """

    rows: tuple[int, int]
    cluster: int
    vectors: int


def table(config: K3Config, choices: Sequence[Choice]) -> dict[str, Any]:
    """The table as its file has it.

    Args:
        config: the model.
        choices: disjoint ranges that cover 1 to 64 rows.

    Raises:
        ValueError: they leave rows out.
    """
    covered = [row for one in choices for row in range(one.rows[0], one.rows[1] + 1)]
    if sorted(covered) != [*range(1, MOST_ROWS + 1)]:
        raise ValueError(f"tilings for {[one.rows for one in choices]}; want 1 to {MOST_ROWS}")
    return {"variants": [*_rows(config, choices)]}


def _rows(config: K3Config, choices: Sequence[Choice]) -> Iterator[dict[str, Any]]:
    most = config.num_blocks
    model = {"hidden": config.hidden_size, "room": most, "eps": config.rms_norm_eps}
    for arch in ARCHS:
        for tp in TENSOR_PARALLEL:
            for name, form in FORMS.items():
                for choice in choices:
                    yield {
                        "id": f"{name}-m{choice.rows[1]}-tp{tp}-{arch.replace('_', '')}",
                        "kernel": f"attn-res-{name}",
                        "arch": arch,
                        "tp": tp,
                        "rows": list(choice.rows),
                        "audit": {
                            "code": f"{FOLDER}/machine_code.py",
                            "contracts": [f"{FOLDER}/contracts/{name}-m{choice.rows[1]}.yaml"],
                        },
                        "cluster": choice.cluster,
                        "vectors": choice.vectors,
                        **model,
                        "most": most,
                        **form,
                    }


def table_text(table: Mapping[str, Any]) -> str:
    """The table's file: a row for each line."""
    rows = ",\n".join(f" {json.dumps(row)}" for row in table["variants"])
    return f'{{"variants": [\n{rows}\n]}}\n'


def choices_of(rows: Sequence[Mapping[str, Any]]) -> tuple[Choice, ...]:
    """The tilings of a table's rows, each once, by rows."""
    found = {tuple(row["rows"]): (row["cluster"], row["vectors"]) for row in rows}
    return tuple(Choice((rows[0], rows[1]), *tiling) for rows, tiling in sorted(found.items()))
