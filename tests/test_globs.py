# SPDX-License-Identifier: Apache-2.0
"""Patterns against a second formulation, and their cost in executed lines."""

import re
import sys
from collections.abc import Callable
from itertools import product
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasttrack import globs
from fasttrack.globs import MAX_PATTERN, check_pattern, ends, matches, may_overlap

MATCHES = [
    ("a", "a", True),
    ("a", "a/b", False),
    ("a", "A", False),
    ("a/b", "a/b", True),
    ("*", "a", True),
    ("*", "a/b", False),
    ("*", ".hidden", True),
    ("a*", "a", True),
    ("*.py", "setup.py", True),
    ("*.py", "a/setup.py", False),
    ("*.py", "setup.pyc", False),
    ("a*b*c", "aXbYc", True),
    ("a*b*c", "aXbY", False),
    ("*ab", "aab", True),
    ("?", "a", True),
    ("?", "ab", False),
    ("a?b", "a/b", False),
    ("?", "\N{LATIN SMALL LETTER E WITH ACUTE}", True),
    ("?", "e\N{COMBINING ACUTE ACCENT}", False),
    ("**", "a", True),
    ("**", "a/b/c", True),
    ("a/**", "a", False),
    ("a/**", "a/b", True),
    ("a/**", "a/b/c", True),
    ("a/**", "ab/c", False),
    ("a/", "a", False),
    ("a/", "a/b/c", True),
    ("*/", "a", False),
    ("*/", "a/b", True),
    ("**/a", "a", True),
    ("**/a", "x/y/a", True),
    ("**/a", "x/ya", False),
    ("a/**/b", "a/b", True),
    ("a/**/b", "a/x/y/b", True),
    ("a/**/b", "ab", False),
    ("**/a/**/b/*.c", "x/a/b/a/y/b/z.c", True),
    ("**/**", "a", True),
    ("a.b", "axb", False),
    ("a+", "aa", False),
    ("(a|b)", "a", False),
    ("a/*", "a//", False),
    ("**", "a//b", False),
    ("**", "../b", False),
    ("?/b", "./b", False),
    ("**", "", False),
    ("**", "a/", False),
]


@pytest.mark.parametrize(("pattern", "path", "expected"), MATCHES)
def test_a_pattern_matches_exactly_these_paths(pattern: str, path: str, expected: bool) -> None:
    assert check_pattern(pattern) is None
    assert matches(pattern, path) is expected


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("", "empty"),
        ("/a", "relative to the repository"),
        ("/", "relative to the repository"),
        ("!a", "negation"),
        ("a/[bc]", "character classes"),
        ("a]", "character classes"),
        ("{a,b}", "braces"),
        ("a}", "braces"),
        ("a\\b", "backslash"),
        ("a\nb", "U+000A"),
        ("a\x7f", "U+007F"),
        ("a//b", "segment ``"),
        ("a//", "segment ``"),
        ("../a", "segment `..`"),
        ("a/..", "segment `..`"),
        ("./a", "segment `.`"),
        ("a/./", "segment `.`"),
        ("a**", "only a whole segment"),
        ("a/***/b", "only a whole segment"),
        ("a" * (MAX_PATTERN + 1), "513 characters, more than 512"),
    ],
)
def test_a_bad_pattern_is_refused_with_its_reason(pattern: str, reason: str) -> None:
    assert reason in (check_pattern(pattern) or "")
    with pytest.raises(ValueError, match=re.escape(reason)):
        matches(pattern, "a")
    with pytest.raises(ValueError, match=re.escape(reason)):
        may_overlap("a", pattern)


def test_the_longest_pattern_is_still_good() -> None:
    assert check_pattern("a" * MAX_PATTERN) is None
    assert matches("a" * MAX_PATTERN, "a" * MAX_PATTERN)


segment = st.one_of(st.just("**"), st.text("ab*?", min_size=1, max_size=4))
patterns = st.builds(
    lambda segments, tail: "/".join(segments) + tail,
    st.lists(segment, min_size=1, max_size=4),
    st.sampled_from(["", "", "/"]),
).filter(lambda pattern: check_pattern(pattern) is None)
paths = st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=5).map("/".join)


def as_regex(pattern: str) -> re.Pattern[str]:
    """The same language, told by a regular expression over a path that ends in `/`."""
    if pattern.endswith("/"):
        pattern += "**"
    out, segments = "", pattern.split("/")
    for number, part in enumerate(segments):
        if part == "**":
            out += "(?:[^/]+/)" + ("+" if number == len(segments) - 1 else "*")
        else:
            translated = part.replace("*", "[^/]*").replace("?", "[^/]")
            out += f"(?=[^/]){translated}/"
    return re.compile(out)


@given(patterns, paths)
@settings(max_examples=1500, deadline=None)
def test_matching_agrees_with_a_regular_expression(pattern: str, path: str) -> None:
    fits = bool(as_regex(pattern).fullmatch(path + "/"))
    assert matches(pattern, path) is fits
    prefix, suffix = ends(pattern)
    assert (path.startswith(prefix) and path.endswith(suffix)) or not fits


SMALL_SEGMENTS = [
    "".join(letters) for length in (1, 2, 3) for letters in product("ab", repeat=length)
]
SMALL_PATHS = [
    "/".join(parts) + "/" for length in (1, 2) for parts in product(SMALL_SEGMENTS, repeat=length)
]


@given(patterns, patterns)
@settings(max_examples=300, deadline=None)
def test_patterns_called_disjoint_share_no_small_path(a: str, b: str) -> None:
    regex_a, regex_b = as_regex(a), as_regex(b)
    shared = [p for p in SMALL_PATHS if regex_a.fullmatch(p) and regex_b.fullmatch(p)]
    assert may_overlap(a, b) is may_overlap(b, a)
    assert may_overlap(a, b) or not shared


@given(patterns, patterns, paths)
@settings(max_examples=1000, deadline=None)
def test_a_path_in_both_patterns_is_an_overlap(a: str, b: str, path: str) -> None:
    assert may_overlap(a, b) or not (matches(a, path) and matches(b, path))


plain_paths = st.lists(st.text("ab", min_size=1, max_size=2), min_size=1, max_size=3).map("/".join)


@given(plain_paths, plain_paths, st.sampled_from(["", "/", "/**"]), st.sampled_from(["", "/**"]))
def test_overlap_is_exact_for_prefix_patterns(a: str, b: str, tail_a: str, tail_b: str) -> None:
    below_a, below_b = a + "/", b + "/"
    if tail_a and tail_b:
        expected = below_a.startswith(below_b) or below_b.startswith(below_a)
    elif tail_a:
        expected = b.startswith(below_a)
    elif tail_b:
        expected = a.startswith(below_b)
    else:
        expected = a == b
    assert may_overlap(a + tail_a, b + tail_b) is expected


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("models/*/kernels/", "models/k3/**", True),
        ("models/*.py", "models/*.cu", False),
        ("models/k*", "models/*3", True),
        ("**/x", "a/**", True),
        ("**/x.py", "a/*.cu", False),
        ("?", "ab", False),
        ("a?", "?b", True),
        ("a/**/b", "a/b", True),
        ("**", "*", True),
        ("a/", "a", False),
    ],
)
def test_overlap_is_decided_with_wildcards_on_both_sides(a: str, b: str, expected: bool) -> None:
    assert may_overlap(a, b) is expected
    assert may_overlap(b, a) is expected


def executed_lines(call: Callable[[], bool]) -> int:
    """Lines of the module under test that a call executes: a cost without a clock."""
    count = 0

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        if frame.f_code.co_filename != globs.__file__:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


PATHOLOGICAL = [
    ("stars in one segment", "*a" * 50 + "b", "a" * 400),
    ("stars and single characters", "*?" * 50 + "b", "a" * 400),
    ("any segments", "**/a/" * 30 + "b", "/".join(["a"] * 200)),
    ("both levels", "**/*a*a*ab/" * 12 + "c", "/".join(["aaaaaaaa"] * 50)),
]


@pytest.mark.parametrize(("pattern", "path"), [row[1:] for row in PATHOLOGICAL])
def test_matching_costs_at_most_pattern_times_path(pattern: str, path: str) -> None:
    assert executed_lines(lambda: matches(pattern, path)) <= 12 * len(pattern) * len(path) + 1000
    assert not matches(pattern, path)


@pytest.mark.parametrize(("pattern", "path"), [row[1:] for row in PATHOLOGICAL])
def test_overlap_costs_at_most_pattern_times_pattern(pattern: str, path: str) -> None:
    other = path[:MAX_PATTERN].rstrip("/")
    assert executed_lines(lambda: may_overlap(pattern, other)) <= (
        16 * len(pattern) * len(other) + 1000
    )
    assert not may_overlap(pattern, other)
