# SPDX-License-Identifier: Apache-2.0
"""Versions and ranges, against the packaging project's own reading of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from fasttrack.evidence.versions import parse_version, within

numbers = st.integers(0, 12)
releases = st.lists(numbers, min_size=1, max_size=4).map(lambda ns: ".".join(map(str, ns)))
versions = st.builds(
    "{}{}{}".format,
    releases,
    st.sampled_from(["", "", "a1", "b2", "rc1", ".post1", ".dev3", "rc1.dev2", "-beta.2"]),
    st.sampled_from(["", "", "+cu130"]),
)


@given(versions, versions)
def test_versions_are_ordered_as_packages_order_them(left: str, right: str) -> None:
    mine = parse_version(left), parse_version(right)
    theirs = (Version(Version(left).public), Version(Version(right).public))
    assert None not in mine
    assert (mine[0] < mine[1], mine[0] == mine[1]) == (  # type: ignore[operator]
        theirs[0] < theirs[1],
        theirs[0] == theirs[1],
    )


@given(releases, st.lists(st.tuples(st.sampled_from([">=", "<=", "==", "!=", ">", "<"]), releases)))
def test_released_versions_are_within_a_range_as_packages_say(
    version: str, clauses: list[tuple[str, str]]
) -> None:
    if clauses:
        specifier = ", ".join(f"{how}{bound}" for how, bound in clauses)
        assert within(version, specifier) == (version in SpecifierSet(specifier))


@pytest.mark.parametrize(
    ("version", "specifier"),
    [
        ("", ">=1"),
        ("main", ">=1"),
        ("1..2", ">=1"),
        ("1.2", ""),
        ("1.2", ">=1,"),
        ("1.2", "1.2"),
        ("1.2", "~=1.2"),
        ("1.2", ">=x"),
    ],
)
def test_what_can_not_be_read_is_not_accepted(version: str, specifier: str) -> None:
    assert not within(version, specifier)
