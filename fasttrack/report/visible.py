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


def visible(text: str) -> str:
    r"""`text` with control, invisible, unassigned and undecodable characters spelled out.

    Terminal escape sequences, right-to-left overrides and bytes that are no UTF-8 appear as
    `\u{1b}` or `\x{ff}`, and blanks behind a blank as `\u{20}`: a long run of them could push a
    forged line to the start of a terminal's next one. Nothing in a report can be hidden or forged
    by its subject.
    """
    if not (text.isascii() and text.isprintable()):
        text = "".join(_shown(c) for c in text)
    return _RUN.sub(r"\\u{20}", text)


def _shown(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # surrogateescape: a byte that is not UTF-8
        return f"\\x{{{code - 0xDC00:02x}}}"
    if character == " ":
        return character
    if character in _BLANK or unicodedata.category(character) in _HIDDEN:
        return f"\\u{{{code:x}}}"
    return character
