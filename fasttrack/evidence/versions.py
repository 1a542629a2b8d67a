# SPDX-License-Identifier: Apache-2.0
"""Whether a measured version is one that the policy accepts.

Versions as Python packages, drivers and CUDA have them: numbers with dots, perhaps followed by a
pre-release, `.post` or `.dev`, and by what was built locally (`+cu130`), which ranges ignore. A
specifier is clauses such as `>=2.11` between commas. What can not be read is not accepted.
"""

import operator
import re
from collections.abc import Callable, Mapping

_VERSION = re.compile(
    r"v?(?P<release>[0-9]{1,9}(?:\.[0-9]{1,9}){0,7})"
    r"(?:[-_.]?(?P<phase>a|alpha|b|beta|rc|c|pre|post|dev)[-_.]?(?P<number>[0-9]{0,9}))?"
    r"(?:\.dev(?P<dev>[0-9]{0,9}))?(?:\+[A-Za-z0-9._-]*)?",
    re.ASCII | re.IGNORECASE,
)
_CLAUSE = re.compile(r"\s*(?P<how>>=|<=|==|!=|>|<)\s*(?P<version>[^\s,<>=!]+)\s*", re.ASCII)
_HOW: Mapping[str, Callable[["Version", "Version"], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_PHASES = ("dev", "a", "b", "rc", "", "post")
_NAMES = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc"}

Version = tuple[tuple[int, ...], int, int, int, int]
"""Release without zeros at its end, phase, number, whether it is no `.dev`, and that number."""


def parse_version(text: str) -> Version | None:
    """What versions are ordered by; None when it is no version."""
    found = _VERSION.fullmatch(text.strip())
    if found is None:
        return None
    release = [int(part) for part in found["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    phase = (found["phase"] or "").lower()
    place = _PHASES.index(_NAMES.get(phase, phase))
    final = int(found["dev"] is None)
    return tuple(release), place, int(found["number"] or 0), final, int(found["dev"] or 0)


def within(version: str, specifier: str) -> bool:
    """Whether a version fits every clause of a specifier; False when either can not be read."""
    found = parse_version(version)
    clauses = [_CLAUSE.fullmatch(clause) for clause in specifier.split(",")]
    return found is not None and all(
        clause is not None
        and (bound := parse_version(clause["version"])) is not None
        and _HOW[clause["how"]](found, bound)
        for clause in clauses
    )


def is_build_of(version: str, wanted: str) -> bool:
    """Whether it is the wanted version, built in whatever way when that names no build."""
    if version == wanted or "+" in wanted:
        return version == wanted
    return within(version, f"=={wanted}")
