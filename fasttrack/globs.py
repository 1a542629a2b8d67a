# SPDX-License-Identifier: Apache-2.0
"""Path patterns of policies and manifests.

A pattern is a list of `/`-separated segments that is compared with a whole repository path:

    *      any characters of one segment, also none
    ?      one character of one segment
    **     as a whole segment: any number of segments, also none; as the last segment at least
           one, so that `a/**` is everything below `a` and never `a` itself
    a/     the same as `a/**`

Everything else is literal, compared code point by code point; callers normalise. Empty
segments, `.` and `..` would let two spellings mean one path: they are refused in patterns and
nothing matches a path that has one.

No regular expression is involved: a comparison takes at most `len(pattern) * len(path)` steps.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

MAX_PATTERN = 512
"""Longest pattern in characters; with paths of at most 4096 it bounds one comparison."""

_ANY_SEGMENTS = "**"
_NOT_PATTERNS = {
    "[": "character classes are not supported; write `?` or one pattern per name",
    "]": "character classes are not supported; write `?` or one pattern per name",
    "{": "alternatives in braces are not supported; write one pattern per alternative",
    "}": "alternatives in braces are not supported; write one pattern per alternative",
    "\\": "a backslash is neither a separator nor an escape; separate segments by `/`",
}


def check_pattern(pattern: str) -> str | None:
    """Says why a pattern is bad.

    Args:
        pattern: the pattern as written.

    Returns:
        One reason, or None when the pattern is good.
    """
    return next(chain(_faults_of_text(pattern), _faults_of_segments(pattern)), None)


def matches(pattern: str, path: str) -> bool:
    """Whether a pattern matches a whole repository path.

    Args:
        pattern: a pattern that `check_pattern` finds good.
        path: repository path, `/`-separated, without leading or trailing `/`.

    Raises:
        ValueError: when the pattern is bad.
    """
    prefix, suffix, slashes, segments = _compiled(pattern)
    # Most paths are told by these alone, without a walk.
    if not (path.startswith(prefix) and path.endswith(suffix)):
        return False
    if slashes is not None and path.count("/") != slashes:
        return False
    parts = path.split("/")
    if "" in parts or "." in parts or ".." in parts:
        return False
    return _fits(segments, parts, _ANY_SEGMENTS, _segment_fits)


def ends(pattern: str) -> tuple[str, str]:
    """What every path that a pattern matches starts and ends with; either may be empty.

    Raises:
        ValueError: when the pattern is bad.
    """
    return _compiled(pattern)[:2]


def may_overlap(pattern_a: str, pattern_b: str) -> bool:
    """Whether some path may match both patterns.

    False is a proof that no path does. True is exact, except that a path of which one segment
    could only be `.` or `..` counts as a path.

    Raises:
        ValueError: when one of the patterns is bad.
    """
    segments_a, segments_b = _compiled(pattern_a).segments, _compiled(pattern_b).segments
    return _overlap(segments_a, segments_b, _ANY_SEGMENTS, _segments_overlap)


def _faults_of_text(pattern: str) -> Iterator[str]:
    if not pattern:
        yield "the pattern is empty"
    if len(pattern) > MAX_PATTERN:
        yield f"the pattern has {len(pattern)} characters, more than {MAX_PATTERN}"
    if pattern.startswith("/"):
        yield "the pattern starts with `/`; paths are relative to the repository"
    if pattern.startswith("!"):
        yield "negation is not supported; list what should match"
    for character in pattern:
        if character in _NOT_PATTERNS:
            yield _NOT_PATTERNS[character]
        if ord(character) < 0x20 or ord(character) == 0x7F:
            yield f"the pattern holds the control character U+{ord(character):04X}"


def _faults_of_segments(pattern: str) -> Iterator[str]:
    for segment in pattern.removesuffix("/").split("/"):
        if segment in ("", ".", ".."):
            yield f"the pattern has the segment `{segment}`; write the path without it"
        if _ANY_SEGMENTS in segment and segment != _ANY_SEGMENTS:
            yield f"`**` is only a whole segment, not a part of `{segment}`"


class _Compiled(NamedTuple):
    """A pattern and what every match of it has.

    Attributes:
        prefix: its text before the first wildcard.
        suffix: its text after the last wildcard.
        slashes: their number; None when `**` allows several.
        segments: the pattern without shorthand.
    """

    prefix: str
    suffix: str
    slashes: int | None
    segments: tuple[str, ...]


@lru_cache(maxsize=16384)
def _compiled(pattern: str) -> _Compiled:
    reason = check_pattern(pattern)
    if reason is not None:
        raise ValueError(reason)
    if pattern.endswith("/"):
        pattern += _ANY_SEGMENTS
    segments = pattern.split("/")
    if segments[-1] == _ANY_SEGMENTS:
        segments.insert(-1, "*")  # at least one segment: `*` matches any, as none is empty
    # In `a/**/b` the slash after `a` belongs to every match as well: `b` follows it. The slash
    # before `b` does not: `**/b` matches `b`.
    text = "/".join(segments)
    wild = [at for at, character in enumerate(text) if character in "*?"]
    prefix = text[: wild[0]] if wild else text
    suffix = text[wild[-1] + 1 :].removeprefix("/") if wild else text
    several = _ANY_SEGMENTS in segments
    return _Compiled(prefix, suffix, None if several else len(segments) - 1, tuple(segments))


def _segment_fits(pattern: str, segment: str) -> bool:
    if "*" not in pattern and "?" not in pattern:
        return pattern == segment
    return _fits(pattern, segment, "*", _character_fits)


def _character_fits(pattern: str, character: str) -> bool:
    return pattern in ("?", character)


def _fits(
    pattern: Sequence[str], items: Sequence[str], star: str, fits: Callable[[str, str], bool]
) -> bool:
    """Matches a sequence with stars, going back to the last star only.

    That suffices: what the stars before the last one took is the shortest that works, and
    whatever a longer choice would allow, the last star can take as well.
    """
    at = item = 0
    last_star, taken = -1, 0
    while item < len(items):
        if at < len(pattern) and pattern[at] == star:
            if at == len(pattern) - 1:
                return True
            last_star, taken = at, item
            at += 1
        elif at < len(pattern) and fits(pattern[at], items[item]):
            at += 1
            item += 1
        elif last_star >= 0:
            taken += 1
            at, item = last_star + 1, taken
        else:
            return False
    return all(rest == star for rest in pattern[at:])


def _segments_overlap(pattern_a: str, pattern_b: str) -> bool:
    return _overlap(pattern_a, pattern_b, "*", _characters_overlap)


def _characters_overlap(a: str, b: str) -> bool:
    return a == b or "?" in (a, b)


def _overlap(
    a: Sequence[str], b: Sequence[str], star: str, compatible: Callable[[str, str], bool]
) -> bool:
    """Whether some sequence matches both patterns: a walk over pairs of positions.

    A star stays while the other pattern moves on, or is left; two plain items move together.
    """
    reached = [True] + [False] * len(b)
    for i in range(len(a) + 1):
        following = [False] * (len(b) + 1)
        for j in range(len(b) + 1):
            if not reached[j]:
                continue
            star_a, star_b = i < len(a) and a[i] == star, j < len(b) and b[j] == star
            if star_a or star_b:
                following[j] = following[j] or i < len(a)
                if j < len(b):
                    reached[j + 1] = True
            elif i < len(a) and j < len(b) and compatible(a[i], b[j]):
                following[j + 1] = True
        if i == len(a):
            return reached[len(b)]
        reached = following
    return False
