# SPDX-License-Identifier: Apache-2.0
"""Which thread holds which element, out of the layouts that a Triton kernel was compiled with.

Read from Triton's GPU dialect (`ttgir`): a blocked layout by its tile, a linear one by its bases,
so that equal layouts of different names compare as equal.
"""

import re
from itertools import product
from math import prod
from typing import Any

import yaml

Threads = dict[tuple[int, int], set[tuple[int, ...]]]
"""Elements by (warp, lane)."""

_DEFINITION = re.compile(r"^#(\w+) = #ttg\.(blocked|linear)<\{(.*)\}>", re.M)


def held(text: str, name: str, shape: tuple[int, ...]) -> Threads:
    """Elements of a tensor of `shape` that each thread holds in the layout called `name`.

    Raises:
        KeyError: the text defines no blocked or linear layout of that name.
    """
    layouts = {found[1]: (found[2], _fields(found[3])) for found in _DEFINITION.finditer(text)}
    kind, fields = layouts[name]
    return (_blocked if kind == "blocked" else _linear)(fields, shape)


def _fields(text: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load("{" + text.replace(" =", ":") + "}")
    return loaded


def _blocked(fields: dict[str, Any], shape: tuple[int, ...]) -> Threads:
    own, lanes, warps = (
        fields[part] for part in ("sizePerThread", "threadsPerWarp", "warpsPerCTA")
    )
    tile = [a * b * c for a, b, c in zip(own, lanes, warps, strict=True)]
    repeats = [range(max(1, size // step)) for size, step in zip(shape, tile, strict=True)]
    threads: Threads = {}
    for warp, lane in product(range(prod(warps)), range(prod(lanes))):
        at = zip(
            _coordinates(warp, warps, fields["order"]),
            _coordinates(lane, lanes, fields["order"]),
            strict=True,
        )
        first = [(w * b + ln) * a for (w, ln), a, b in zip(at, own, lanes, strict=True)]
        threads[warp, lane] = {
            tuple(
                (f + o + r * t) % size
                for f, o, r, t, size in zip(first, inner, repeat, tile, shape, strict=True)
            )
            for inner in product(*map(range, own))
            for repeat in product(*repeats)
        }
    return threads


def _coordinates(number: int, sizes: list[int], order: list[int]) -> list[int]:
    at = [0] * len(sizes)
    for dim in order:
        number, at[dim] = divmod(number, sizes[dim])
    return at


def _linear(fields: dict[str, Any], shape: tuple[int, ...]) -> Threads:
    def sums(bases: list[list[int]]) -> list[tuple[int, ...]]:
        found = [(0,) * len(shape)]
        for base in bases:
            found += [_xor(other, base) for other in found]
        return found

    registers, lanes, warps = (sums(fields[part]) for part in ("register", "lane", "warp"))
    return {
        (warp, lane): {_xor(_xor(w, ln), r) for r in registers}
        for (warp, w), (lane, ln) in product(enumerate(warps), enumerate(lanes))
    }


def _xor(left: tuple[int, ...], right: tuple[int, ...] | list[int]) -> tuple[int, ...]:
    return tuple(a ^ b for a, b in zip(left, right, strict=True))
