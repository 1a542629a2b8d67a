# SPDX-License-Identifier: Apache-2.0
"""Hostile scopes and policies: enormous or many regions, many units, patterns that backtrack."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from fasttrack.testing import Content
from tests.engine import KERNEL, MANIFEST, POLICY, ROOT, files
from tests.hostile.case import (
    FAST_TRACK,
    ORDINARY,
    REFUSED,
    Hostile,
    manifest,
    policy,
    topic,
)

STARS = "*a" * 120
DEEP_STARS = "**/" * 120 + "a"
REGION = files()[MANIFEST].partition("scope:")[2].partition("\n")[2].partition("refuses:")[0]


def _edited(where: Path, text: Callable[[], str], path: str = MANIFEST) -> None:
    topic(where, {path: text(), KERNEL: "BLOCK = 64\n"})


def _in_force(
    where: Path, text: Callable[[], str], path: str, change: Mapping[str, Content]
) -> None:
    topic(where, change, before={path: text()})


def _numbers(count: int, start: int = 1, step: int = 1) -> str:
    return ", ".join(str(start + step * n) for n in range(count))


def _wide(tier: str, **fields: str) -> str:
    text = REGION.replace("tier: declared", f"tier: {tier}")
    for name, value in fields.items():
        start = text.index(f"{name}: ")
        end = text.index("\n", start)
        text = f"{text[:start]}{name}: {value}{text[end:]}"
    return text


def _regions(*regions: str) -> str:
    return manifest(REGION, "".join(regions))


def _trillion(tier: str) -> str:
    return _regions(
        _wide(
            tier,
            requests="{min: 1, max: 1000000000000}",
            rows_max="1000000000000",
            context_max="1000000000000",
            draft_tokens=f"[{_numbers(64, 0)}]",
            tensor_parallel=f"[{_numbers(64, 64, 64)}]",
            decode_context_parallel="[1, 2, 4, 8, 16, 32, 64]",
            hardware="[h100, h200, b200, gb300]",
        )
    )


def _many_regions(tier: str) -> str:
    """64 regions that each cut the others along another axis."""
    return _regions(
        *(
            _wide(
                tier,
                requests=f"{{min: {n + 1}, max: {1000 - n}}}",
                rows_max=str(2000 + n),
                context_max=str(9000 - 7 * n),
                draft_tokens=f"[{_numbers(64 - n, 0)}]",
                tensor_parallel=f"[{_numbers(1 + n)}]",
                decode_context_parallel="[1]",
            ).replace("id: h100-tp1", f"id: r{n}")
            for n in range(64)
        )
    )


def _many_units(count: int, per_unit: int, pattern: str) -> str:
    units = "".join(
        f"  - id: u{n}\n"
        f"    files: [{', '.join(f'{ROOT}u{n}/{pattern}{i}' for i in range(per_unit))}]\n"
        f"    tests: ['tests/{pattern}{n}']\n"
        "    axes: [rows, tensor_parallel]\n"
        for n in range(count)
    )
    whole = files()[MANIFEST]
    before, _, rest = whole.partition("  - id: foo-core")
    return before + units + "\n\n" + rest[rest.index("scope:") :]


def _many_wirings(count: int) -> str:
    entries = ", ".join(f"{{path: engine/w{n}.py, symbol: f, max_lines: 1}}" for n in range(count))
    return manifest("  switch:", f"  wiring: [{entries}]\n  switch:")


def _class_patterns(pattern: str, count: int) -> str:
    match = ", ".join(f'"{pattern}{n}"' for n in range(count))
    return policy("paths:", f"paths:\n  - {{class: docs, match: [{match}]}}")


def _like(pattern: str, count: int) -> dict[str, str]:
    """New files whose names keep a pattern busy to their end."""
    return {f"{ROOT}{pattern}/m{n}.py": f"X = {n}\n" for n in range(count)}


_A_PATHS = _like("a" * 200 + "/" + "a/" * 100 + "a" * 200, 300)
_NEW_MANIFESTS = {
    f"manifests/m{n}.yaml": files()[MANIFEST].replace("name: foo", f"name: m{n}")
    for n in range(200)
}

CASES = (
    Hostile(
        "a declared region of 10^12 requests and contexts",
        partial(_edited, text=partial(_trillion, "declared")),
        ORDINARY,
        "FT30",
    ),
    Hostile(
        "a tested region of 10^12 requests and contexts",
        partial(_edited, text=partial(_trillion, "stress-tested")),
        ORDINARY,
        "FT30",
    ),
    Hostile(
        "such a region in force",
        partial(
            _in_force,
            text=partial(_trillion, "served"),
            path=MANIFEST,
            change={KERNEL: "BLOCK = 64\n"},
        ),
        ORDINARY,
        "points",
    ),
    Hostile(
        "64 regions that cut each other",
        partial(_edited, text=partial(_many_regions, "kernel-tested")),
        ORDINARY,
        "FT305",
    ),
    Hostile(
        "such regions in force",
        partial(
            _in_force,
            text=partial(_many_regions, "kernel-tested"),
            path=MANIFEST,
            change={KERNEL: "BLOCK = 64\n"},
        ),
        ORDINARY,
        "points",
    ),
    Hostile(
        "1,000 regions",
        partial(
            _edited,
            text=lambda: _regions(*(REGION.replace("h100-tp1", f"r{n}") for n in range(1000))),
        ),
        REFUSED,
        "FT301",
    ),
    Hostile(
        "64 units with 64 starry patterns each",
        partial(_edited, text=partial(_many_units, 64, 64, "*a" * 60)),
        ORDINARY,
        "FT308",
    ),
    Hostile(
        "such units and 300 files that fit almost",
        partial(
            _in_force, text=partial(_many_units, 64, 64, "*a" * 60), path=MANIFEST, change=_A_PATHS
        ),
        ORDINARY,
        "",
    ),
    Hostile(
        "64 units with 64 patterns of `**` each",
        partial(
            _in_force,
            text=partial(_many_units, 64, 64, "**/a/" * 20),
            path=MANIFEST,
            change=_A_PATHS,
        ),
        ORDINARY,
        "",
    ),
    Hostile(
        "2,000 units", partial(_edited, text=partial(_many_units, 2000, 1, "")), REFUSED, "FT301"
    ),
    Hostile(
        "1,000 wiring entries",
        partial(_edited, text=partial(_many_wirings, 1000)),
        REFUSED,
        "FT301",
    ),
    Hostile(
        "a policy with 64 patterns of many `*`",
        partial(_in_force, text=partial(_class_patterns, STARS, 64), path=POLICY, change=_A_PATHS),
        ORDINARY,
        "",
    ),
    Hostile(
        "a policy with 64 patterns of many `**`",
        partial(
            _in_force, text=partial(_class_patterns, DEEP_STARS, 64), path=POLICY, change=_A_PATHS
        ),
        ORDINARY,
        "",
    ),
    Hostile(
        "a policy with 5,000 patterns of many `*`",
        partial(
            _in_force, text=partial(_class_patterns, "*a" * 20, 5000), path=POLICY, change=_A_PATHS
        ),
        ORDINARY,
        "",
    ),
    Hostile("200 new manifests", partial(topic, change=_NEW_MANIFESTS), REFUSED, "FT306"),
    Hostile(
        "200 manifests in force",
        partial(topic, change={KERNEL: "BLOCK = 64\n"}, before=_NEW_MANIFESTS),
        FAST_TRACK,
        "",
    ),
)
