# SPDX-License-Identifier: Apache-2.0
"""Whether an exact version lies in a range such as `>=2.11,<3`."""

import re
from itertools import zip_longest

from fasttrack.errors import FactUnavailable

_TERM = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*([0-9]+(?:\.[0-9]+)*)\s*")
_RELEASE = re.compile(r"([0-9]+(?:\.[0-9]+)*)(?:\+[a-z0-9.]+)?")
_HOLDS = {">=": (0, 1), "<=": (-1, 0), "==": (0,), "!=": (-1, 1), ">": (1,), "<": (-1,)}


def in_range(version: str, specifier: str) -> bool:
    """Whether a released version meets every term of a specifier.

    Args:
        version: dotted numbers; a local part such as `+cu130` is left out of the comparison.
        specifier: terms of a comparison sign and dotted numbers, separated by commas.

    Raises:
        FactUnavailable: a pre-release, or a term of another form: people read those.
    """
    release = _RELEASE.fullmatch(version)
    terms = [_TERM.fullmatch(term) for term in specifier.split(",")]
    if release is None or None in terms:
        raise FactUnavailable(f"the version {version} can not be compared with '{specifier}'")
    return all(_order(release[1], term[2]) in _HOLDS[term[1]] for term in terms if term is not None)


def _order(a: str, b: str) -> int:
    """-1, 0 or 1 as `a` is before, at or after `b`; missing numbers are zeros."""
    pairs = zip_longest(map(int, a.split(".")), map(int, b.split(".")), fillvalue=0)
    return next(((x > y) - (x < y) for x, y in pairs if x != y), 0)
