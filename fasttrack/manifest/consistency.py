# SPDX-License-Identifier: Apache-2.0
"""What the fields of a manifest say about each other, beyond each field alone.

Works on the parts of a manifest that could be read, so that one wrong word in a region does not
hide a gate file outside the roots: every problem of a manifest is found in one pass.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from fasttrack import globs
from fasttrack.manifest.model import (
    GATE_UNIT,
    PATH_UNIT,
    Claim,
    Code,
    Evidence,
    Lease,
    Refusal,
    Region,
    Switch,
    Unit,
    Waiver,
    Weights,
)
from fasttrack.manifest.words import UnitAxis

SEQUENCES = frozenset({"acceptance_rates"})
"""Keys of lists that are no sets: the place of a value says what it is about."""
RESERVED_IDS = {PATH_UNIT: "all roots together", GATE_UNIT: "the files of the gate"}
"""Ids that no unit may take, and what they stand for."""

Loc = tuple[str | int, ...]
T = TypeVar("T")
Items = Mapping[int, T]


@dataclass(frozen=True)
class Fault:
    """A contradiction, at a path of keys and indices from the top of the manifest."""

    loc: Loc
    saw: str
    want: str
    fix: str = ""


@dataclass(frozen=True)
class Sections:
    """The parts of a manifest that could be read; lists by the index of their items."""

    weights: Weights | None
    code: Code | None
    units: Items[Unit]
    unit_ids: frozenset[str]
    scope: Items[Region]
    refuses: Items[Refusal]
    evidence: Evidence | None
    claims: Items[Claim]
    lease: Lease | None
    waivers: Items[Waiver]


def holds_path(root: str, path: str) -> bool:
    """Whether a root (a directory ending in `/`, or a file) is or holds a path."""
    return path.startswith(root) if root.endswith("/") else path == root


def repeated_values(data: object, loc: Loc = ()) -> Iterator[Fault]:
    """Words and numbers that a list of the document holds twice, at the second place."""
    if isinstance(data, dict):
        for key, value in data.items():
            if key not in SEQUENCES:
                yield from repeated_values(value, (*loc, key))
    elif isinstance(data, list):
        plain = [(i, v) for i, v in enumerate(data) if not isinstance(v, dict | list)]
        yield from repeated(((*loc, i), (type(v), v), f"'{v}'") for i, v in plain)
        for i, value in enumerate(data):
            yield from repeated_values(value, (*loc, i))


def weights_faults(weights: Weights) -> Iterator[Fault]:
    """Exactly one name of the weights."""
    named = [n for n in (weights.revision, weights.digest) if n is not None]
    if len(named) != 1:
        saw = "both a revision and a digest" if named else "neither a revision nor a digest"
        yield Fault(("weights",), saw, "exactly one of 'revision' and 'digest'")


def code_faults(code: Code) -> Iterator[Fault]:
    """Roots that do not nest, gate inside, wiring outside, a switch whose default is off."""
    for i, root in enumerate(code.roots):
        for other in code.roots:
            if other != root and holds_path(other, root):
                yield Fault(
                    ("code", "roots", i), f"'{root}' inside the root '{other}'", "disjoint roots"
                )
    for i, path in enumerate(code.gate):
        if not any(holds_path(root, path) for root in code.roots):
            yield Fault(("code", "gate", i), f"'{path}' outside the roots", "a file in the roots")
    for i, wiring in enumerate(code.wiring):
        for root in code.roots:
            if holds_path(root, wiring.path):
                saw = f"'{wiring.path}' inside the root '{root}'"
                yield Fault(("code", "wiring", i, "path"), saw, "a shared file, outside the roots")
    yield from repeated(
        (("code", "wiring", i), (w.path, w.symbol), f"'{w.symbol}' of '{w.path}'")
        for i, w in enumerate(code.wiring)
    )
    yield from _switch_faults(code.switch)


def unit_faults(units: Items[Unit], code: Code | None) -> Iterator[Fault]:
    """Unique ids, files in the roots, switch points with rows, a table that is a data file."""
    yield from repeated((("units", i, "id"), u.id, f"'{u.id}'") for i, u in units.items())
    for i, unit in units.items():
        loc: Loc = ("units", i)
        if unit.id in RESERVED_IDS:
            want = f"another id: it stands for {RESERVED_IDS[unit.id]}"
            yield Fault((*loc, "id"), f"the reserved id '{unit.id}'", want)
        for j, pattern in enumerate(unit.files):
            if code is not None and not any(_inside(root, pattern) for root in code.roots):
                saw = f"'{pattern}', which may match outside the roots"
                yield Fault((*loc, "files", j), saw, "a pattern that starts with a root")
        if unit.switch_points and UnitAxis.ROWS not in unit.axes:
            saw = "switch points on a unit without the axis 'rows'"
            yield Fault((*loc, "switch_points"), saw, "the axis 'rows', or no switch points")
        if unit.variants is not None:
            yield from _table_faults(unit, unit.variants, loc)


def lease_faults(lease: Lease, code: Code | None, sponsor: object) -> Iterator[Fault]:
    """A lease that runs forwards, two people, and a removal that takes out everything."""
    if lease.granted >= lease.expires:
        saw = f"{lease.expires}, not after {lease.granted}"
        yield Fault(("lease", "expires"), saw, "a day after 'granted'")
    if lease.owner.removeprefix("@") == lease.backup.removeprefix("@"):
        saw = f"'{lease.backup}', who is also the owner"
        yield Fault(("lease", "backup"), saw, "somebody else")
    if isinstance(sponsor, str) and "/" in sponsor:
        yield Fault(("sponsor",), f"the team '{sponsor}'", "one person")
    for i, edit in enumerate(lease.removal.wiring):
        if edit.symbol is None and not edit.lines:
            saw = f"nothing to delete in '{edit.path}'"
            yield Fault(("lease", "removal", "wiring", i), saw, "a 'symbol' or 'lines'")
    if code is None:
        return
    for root in code.roots:
        if not any(holds_path(path, root) for path in lease.removal.paths):
            saw = f"no entry that removes the root '{root}'"
            yield Fault(("lease", "removal", "paths"), saw, "every root", f"add '{root}'")
    edited = {edit.path for edit in lease.removal.wiring}
    for path in sorted({w.path for w in code.wiring} - edited):
        loc: Loc = ("lease", "removal", "wiring")
        yield Fault(loc, f"no edit of the wired file '{path}'", "an edit of every wired file")


def package_name(package: str) -> str:
    """The spelling that all variants of a package's name share."""
    return re.sub(r"[-_.]+", "-", package).lower()


def toolchain_faults(packages: object) -> Iterator[Fault]:
    """One package under two spellings, of which either could be the one that is meant."""
    named = [p for p in packages if isinstance(p, str)] if isinstance(packages, dict) else []
    yield from repeated((("toolchain", p), package_name(p), f"'{p}'") for p in named)


def list_faults(sections: Sections) -> Iterator[Fault]:
    """Repeated features, tasks and waivers."""
    yield from repeated(
        (("refuses", i, "feature"), r.feature, f"'{r.feature}'")
        for i, r in sections.refuses.items()
    )
    yield from repeated(
        (("waivers", i), (w.rule, w.path, w.fingerprint), f"the waiver of {w.rule} for '{w.path}'")
        for i, w in sections.waivers.items()
    )
    if sections.evidence is not None and len(sections.units) == len(sections.unit_ids):
        yield from _test_faults(sections.evidence, sections.units.values())
    evals = sections.evidence.evals if sections.evidence else ()
    yield from repeated(
        (("evidence", "evals", i, "task"), e.task, f"'{e.task}'") for i, e in enumerate(evals)
    )


def _switch_faults(switch: Switch) -> Iterator[Fault]:
    if switch.default != switch.fallback:
        saw = f"'{switch.fallback}', while the default is '{switch.default}'"
        yield Fault(("code", "switch", "fallback"), saw, "the default")
    if switch.value in {switch.default, switch.fallback}:
        saw = f"'{switch.value}', which is also the default or the fallback"
        yield Fault(("code", "switch", "value"), saw, "a value that has to be asked for")


def _table_faults(unit: Unit, table: str, loc: Loc) -> Iterator[Fault]:
    if not any(globs.matches(pattern, table) for pattern in (*unit.data, *unit.files)):
        saw = f"'{table}', which no pattern of 'data' or 'files' matches"
        yield Fault((*loc, "variants"), saw, "a data file of the unit", "add it to 'data'")
    if not unit.archs:
        yield Fault((*loc, "variants"), "a variant table on a unit without 'archs'", "its 'archs'")


def _test_faults(evidence: Evidence, units: Iterable[Unit]) -> Iterator[Fault]:
    """Named tests that judge no unit, of which no evidence would be asked."""
    patterns = [pattern for unit in units for pattern in unit.tests]
    for i, test in enumerate(evidence.tests):
        if not any(globs.matches(pattern, test.partition("::")[0]) for pattern in patterns):
            saw = f"'{test}', which no unit's 'tests' match"
            yield Fault(("evidence", "tests", i), saw, "a test of a unit")


def _inside(root: str, pattern: str) -> bool:
    """Whether everything that a pattern matches is in a root."""
    return pattern == root or (root.endswith("/") and pattern.startswith(root))


def repeated(items: Iterable[tuple[Loc, object, str]]) -> Iterator[Fault]:
    """A fault at each item (place, key, words) whose key came before."""
    seen: set[object] = set()
    for loc, key, shown in items:
        if key in seen:
            yield Fault(loc, f"{shown} a second time", "each entry once", "remove one of them")
        seen.add(key)
