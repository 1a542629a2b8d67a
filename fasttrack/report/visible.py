# SPDX-License-Identifier: Apache-2.0
"""Makes contributors' text safe to show: what a reader sees is what is there."""

import re
import unicodedata

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs", "Mn", "Me"})
"""Categories: controls, formats, surrogates, private and unassigned characters, separators, and
marks, which change the character before them and tell two spellings of one letter apart."""
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and signs that have no ink."""
_RUN = re.compile("(?<= ) ")
MAX_INDENT = 24
"""Blanks in a row that a line of a log may have: code and tracebacks are indented, and no terminal
is so narrow that they would push text to its next line."""
_LONG_RUN = re.compile(f"(?<= {{{MAX_INDENT}}}) ")


def visible(text: str) -> str:
    r"""`text` with control, invisible, unassigned and undecodable characters spelled out.

    Terminal escape sequences, right-to-left overrides and bytes that are no UTF-8 appear as
    `\u{1b}` or `\x{ff}`, and blanks behind a blank as `\u{20}`: a long run of them could push a
    forged line to the start of a terminal's next one. Nothing in a report can be hidden or forged
    by its subject.
    """
    return _RUN.sub(r"\\u{20}", _spelled(text))


def visible_log(line: str) -> str:
    """The same of a line of a log, which keeps up to `MAX_INDENT` blanks in a row."""
    return _LONG_RUN.sub(r"\\u{20}", _spelled(line))


def _spelled(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(c) for c in text)


def _shown(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # surrogateescape: a byte that is not UTF-8
        return f"\\x{{{code - 0xDC00:02x}}}"
    if character == " ":
        return character
    if character in _BLANK or unicodedata.category(character) in _HIDDEN:
        return f"\\u{{{code:x}}}"
    return character
