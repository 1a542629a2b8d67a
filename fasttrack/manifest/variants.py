# SPDX-License-Identifier: Apache-2.0
"""Variant tables: which variant of a kernel serves which rows, as data beside the kernel.

    {"variants": [{"id": "kda-sm90-m8", "kernel": "kda", "arch": "sm_90a", "tp": 8,
                   "rows": [3, 8], "warps": 4}, ...]}

Rows are closed ranges, disjoint per kernel, architecture and tensor parallelism. `audit` names the
machine code, for `fasttrack evidence collect`:

    "audit": {"code": "engine/kda/m8.sm_90a.cubin", "contracts": ["engine/kda/m8.yaml"]}

Every other key is a parameter of the kernel and says nothing here.
"""

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fasttrack.errors import InputError, Problem
from fasttrack.manifest.fields import FilePath, Identifier

WHOLE_UNIT = "all"
"""Stands for a whole unit where a cell asks for a variant; no variant may take it as id."""
MAX_BYTES = 1 << 20
MAX_VARIANTS = 4096

RowCount = Annotated[int, Field(ge=1, le=1 << 20)]


class AuditedCode(BaseModel):
    """What of a variant is audited, by repository paths of the unit's files and data."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    code: FilePath
    """A cubin, PTX, or a module (`.py`) that makes the cubin of a variant."""
    contracts: Annotated[tuple[FilePath, ...], Field(max_length=256)] = ()
    """Contracts of its kernels; a module may hold them, too."""


class Variant(BaseModel):
    """One row of a table."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, defer_build=True)

    id: Identifier
    """Unique in the table."""
    kernel: Identifier
    """The kernel that it is a variant of."""
    arch: Annotated[str, Field(pattern=r"^sm_[0-9]{2,3}[af]?$")]
    """The GPU architecture that it is built for."""
    tp: Annotated[int, Field(ge=1, le=4096)]
    """The tensor parallelism whose shapes it has."""
    rows: tuple[RowCount, RowCount]
    """Fewest and most rows that it serves."""
    audit: AuditedCode | None = None
    """Its machine code; without it nothing can be audited."""

    @property
    def series(self) -> tuple[str, str, int]:
        """Kernel, architecture and tensor parallelism: within these, rows decide."""
        return self.kernel, self.arch, self.tp


class VariantTable(BaseModel):
    """The variants of one unit."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    variants: Annotated[tuple[Variant, ...], Field(min_length=1, max_length=MAX_VARIANTS)]
    """All variants, in the order of the file."""

    @cached_property
    def archs(self) -> frozenset[str]:
        """The architectures that the table has variants for."""
        return frozenset(variant.arch for variant in self.variants)


def load_variant_table(text: bytes | str, source: str) -> VariantTable:
    """Reads a variant table.

    Args:
        text: the JSON text.
        source: path for messages.

    Raises:
        InputError: the text is not JSON, a key is missing, repeated or of the wrong type, ids are
            repeated, a range is reversed, or two ranges of one series overlap.
    """
    try:
        data = _json(text, source)
        # Strict JSON mode: arrays are tuples, and still nothing is coerced.
        table = VariantTable.model_validate_json(json.dumps(data))
    except ValidationError as error:
        raise InputError(
            [
                Problem(f"{source}:{_dotted(e['loc'])}", repr(e["input"])[:80], e["msg"])
                for e in error.errors(include_url=False)
            ]
        ) from error
    if problems := [*_id_problems(table, source), *_range_problems(table, source)]:
        raise InputError(problems)
    return table


def switch_points(table: VariantTable) -> tuple[int, ...]:
    """Rows from which another variant takes over in some series, in rising order.

    The first range of a series takes over from nothing, so its start is not among them.
    """
    return tuple(sorted({later.rows[0] for series in _series(table) for later in series[1:]}))


def _json(text: bytes | str, source: str) -> Any:
    if len(text) > MAX_BYTES:
        raise InputError.one(source, f"{len(text)} bytes", f"at most {MAX_BYTES} bytes")
    try:
        return json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        where = source
        if isinstance(error, json.JSONDecodeError):
            where = f"{source}:{error.lineno}:{error.colno}"
        raise InputError.one(
            where, str(error) or "too deep", "a JSON object with a list 'variants'"
        ) from error


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) != len(pairs):
        raise ValueError(f"a repeated key among {', '.join(key for key, _ in pairs)[:80]}")
    return read


def _no_constant(name: str) -> Literal[0]:
    raise ValueError(f"the non-finite number {name}")


def _dotted(loc: Sequence[str | int]) -> str:
    return ".".join(str(part) for part in loc) or "top"


def _id_problems(table: VariantTable, source: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for i, variant in enumerate(table.variants):
        if variant.id == WHOLE_UNIT:
            yield Problem(f"{source}:variants.{i}.id", f"'{WHOLE_UNIT}'", "another id")
        if variant.id in seen:
            yield Problem(f"{source}:variants.{i}.id", f"'{variant.id}' again", "unique ids")
        seen.add(variant.id)


def _range_problems(table: VariantTable, source: str) -> Iterator[Problem]:
    places = {variant.id: i for i, variant in enumerate(table.variants)}
    for variant in table.variants:
        low, high = variant.rows
        if low > high:
            where = f"{source}:variants.{places[variant.id]}.rows"
            yield Problem(where, f"[{low}, {high}]", "a range whose start is not above its end")
    for series in _series(table):
        for earlier, later in pairwise(series):
            if later.rows[0] <= earlier.rows[1]:
                yield Problem(
                    f"{source}:variants.{places[later.id]}.rows",
                    f"{list(later.rows)}, which overlaps {list(earlier.rows)} of '{earlier.id}'",
                    "disjoint ranges per kernel, arch and tp",
                )


def _series(table: VariantTable) -> list[list[Variant]]:
    """Variants grouped by series, each in the order of their rows."""
    series: dict[tuple[str, str, int], list[Variant]] = {}
    for variant in sorted(table.variants, key=lambda v: (v.series, v.rows)):
        series.setdefault(variant.series, []).append(variant)
    return list(series.values())
