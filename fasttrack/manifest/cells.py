# SPDX-License-Identifier: Apache-2.0
"""Cells: the questions that evidence answers, each with a key that does not name the manifest."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from fasttrack.vocabulary import Kind

Value = str | int
CellId = tuple[Kind, str]
"""Kind and key of a cell."""


@dataclass(frozen=True, order=True)
class Cell:
    """One thing to show by evidence.

    Cells of two regions may have the same kind and key: one statement then covers both.

    Attributes:
        kind: the kind of evidence.
        region: id of the region that owes it; empty when the manifest as a whole does.
        key: canonical JSON of `values`; what statements bind to.
        values: axis to value; with `unit` where the evidence speaks of one unit, else it speaks
            of `path`.
    """

    kind: Kind
    region: str
    key: str
    values: Mapping[str, Value] = field(compare=False)

    @property
    def id(self) -> "CellId":
        """What two regions may share, and what statements are looked up by."""
        return self.kind, self.key


def cell(kind: Kind, region: str, values: Mapping[str, Value]) -> Cell:
    """The cell with these values."""
    plain = {k: str(v) if isinstance(v, str) else v for k, v in values.items()}
    return Cell(kind, region, _canonical(plain), MappingProxyType(plain))


_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode
"""Made once: statements are many, and each has a cell."""
