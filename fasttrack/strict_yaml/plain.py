# SPDX-License-Identifier: Apache-2.0
"""Plain (unquoted) YAML scalars that YAML 1.1 and 1.2 readers take for the same value.

Whole numbers, numbers with a point, ISO dates, `true`, `false` and `null` are read in one
spelling each. Whatever some reader might take for another number, boolean, time or null is
ambiguous and has to be quoted. Everything else is text.
"""

import math
import re
from dataclasses import dataclass
from datetime import date

Scalar = str | int | float | bool | date | None

_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+(?:[eE][-+][0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

_BOOLEANS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n"})
_SPECIAL = frozenset({"null", "~", "=", "<<", ".inf", "+.inf", "-.inf", ".nan"})
_NUMBER_LIKE = re.compile(
    r"[-+]?(?:"
    r"(?=[0-9_.])[0-9_]*\.?[0-9_]*(?:[eE][-+]?[0-9_]*)?"  # base 10 and 8, exponents
    r"|0[bB][01_]+|0[oO][0-7_]+|0[xX][0-9a-fA-F_]+"
    r"|[0-9][0-9_]*(?::[0-9]+)+(?:\.[0-9_]*)?"  # base 60
    r")"
)
_TIME_LIKE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt\s].*)?", re.DOTALL)

_MAX_NUMBER = 40
"""Longest number in characters; a 64-bit integer has 20, a double 24."""
_MAX_SHOWN = 40


@dataclass(frozen=True)
class Ambiguous:
    """Why a plain scalar is not read: what it is, what would be read, how to get there."""

    saw: str
    want: str
    fix: str


def shown(text: str) -> str:
    """A piece of input for a message: one line, printable, at most 40 characters."""
    cut = text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in cut)


def read_plain(text: str) -> Scalar | Ambiguous:
    """Reads one plain scalar.

    Args:
        text: the scalar's text, line breaks already folded.

    Returns:
        The value, or why it has none that all readers agree on.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text == "":
        want = "a value; an empty field is an error, never `any`"
        return Ambiguous("no value", want, "write the value, or remove the key")
    if text.lower() in _BOOLEANS:
        want = "`true` or `false`, or quoted text"
        return Ambiguous(f"`{text}` without quotes", want, f'quote it: "{text}"')
    if _NUMBER_LIKE.fullmatch(text):
        return _number(text)
    if _TIME_LIKE.fullmatch(text):
        return _date(text)
    return _ambiguous(text) if text.lower() in _SPECIAL else text


def _number(text: str) -> Scalar | Ambiguous:
    if len(text) > _MAX_NUMBER:
        saw = f"a number of {len(text)} characters"
        return Ambiguous(saw, f"at most {_MAX_NUMBER}", "shorten it; if it is text, quote it")
    if _INTEGER.fullmatch(text):
        number = int(text)
        if -(2**63) <= number < 2**63:
            return number
        return Ambiguous(f"`{text}`", "a whole number of 64 bits", "if it is text, quote it")
    if _FLOAT.fullmatch(text):
        real = float(text)
        if math.isfinite(real):
            return real
        return Ambiguous(f"`{text}`", "a finite number", "if it is text, quote it")
    return _ambiguous(text)


def _date(text: str) -> Scalar | Ambiguous:
    if not _DATE.fullmatch(text):
        return _ambiguous(text)
    try:
        return date.fromisoformat(text)
    except ValueError:
        return Ambiguous(
            f"`{text}`", "a day of the calendar", "correct the date, or quote the text"
        )


def _ambiguous(text: str) -> Ambiguous:
    want = "a value that every YAML version reads alike"
    return Ambiguous(f"`{shown(text)}` without quotes", want, f'quote it: "{shown(text)}"')
