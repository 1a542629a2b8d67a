# SPDX-License-Identifier: Apache-2.0
"""What the patterns of a `match` statement bind: the subject, or what is in it."""

import ast
from typing import TYPE_CHECKING

from fasttrack.meaning.objects import attribute, element, elements
from fasttrack.meaning.values import UNKNOWN, Items, OwnClass, OwnObject, Values, joined, text

if TYPE_CHECKING:
    from fasttrack.meaning.reader import Reader


def bind(reader: "Reader", pattern: ast.pattern, subject: Values) -> None:
    """Binds the names of a pattern, as if the subject matched it."""
    match pattern:
        case ast.MatchAs(pattern=inner, name=name):
            if name is not None:
                reader.bind(name, subject, pattern)
            if inner is not None:
                bind(reader, inner, subject)
        case ast.MatchOr(patterns=patterns):
            for inner in patterns:
                bind(reader, inner, subject)
        case ast.MatchMapping():
            _mapping(reader, pattern, subject)
        case ast.MatchSequence(patterns=patterns):
            _sequence(reader, patterns, subject)
        case ast.MatchClass():
            _instance(reader, pattern, subject)


def _mapping(reader: "Reader", pattern: ast.MatchMapping, subject: Values) -> None:
    for key, inner in zip(pattern.keys, pattern.patterns, strict=True):
        name = text(reader.value(key))
        found = joined(UNKNOWN, *(element(reader, value, name, None) for value in subject))
        bind(reader, inner, found)
    if pattern.rest is not None:
        reader.bind(pattern.rest, subject, pattern)


def _sequence(reader: "Reader", patterns: list[ast.pattern], subject: Values) -> None:
    found = elements(reader, subject)
    starred = next((i for i, p in enumerate(patterns) if isinstance(p, ast.MatchStar)), None)
    if starred is not None:
        end = max(starred, len(found) - (len(patterns) - starred - 1))
        rest: Values = (Items(found[starred:end]),)
        found = [*found[:starred], rest, *found[end:]]
    for position, inner in enumerate(patterns):
        values = found[position] if position < len(found) else UNKNOWN
        if isinstance(inner, ast.MatchStar):
            if inner.name is not None:
                reader.bind(inner.name, values, inner)
        else:
            bind(reader, inner, values)


def _instance(reader: "Reader", pattern: ast.MatchClass, subject: Values) -> None:
    names = _positional(subject)
    for position, inner in enumerate(pattern.patterns):
        name = names[position] if position < len(names) else None
        bind(reader, inner, _part(reader, subject, name))
    for name, inner in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
        bind(reader, inner, _part(reader, subject, name))


def _part(reader: "Reader", subject: Values, name: str | None) -> Values:
    """An attribute of the subject; itself, as `str(text)` takes it, when no name is known."""
    if name is None:
        return subject
    return joined(UNKNOWN, *(attribute(reader, value, name) for value in subject))


def _positional(subject: Values) -> tuple[str, ...]:
    kinds = [v.of if isinstance(v, OwnObject) else v for v in subject]
    return next((kind.fields for kind in kinds if isinstance(kind, OwnClass) and kind.fields), ())
