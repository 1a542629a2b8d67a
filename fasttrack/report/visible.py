# SPDX-License-Identifier: Apache-2.0
"""Makes contributors' text safe to show: what a reader sees is what is there."""

import unicodedata

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def visible(text: str) -> str:
    r"""`text` with control, invisible, unassigned and undecodable characters spelled out.

    Terminal escape sequences, right-to-left overrides and bytes that are no UTF-8 appear as
    `\u{1b}` or `\x{ff}`, so that nothing in a report can be hidden or forged by its subject.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(c) for c in text)


def _shown(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # surrogateescape: a byte that is not UTF-8
        return f"\\x{{{code - 0xDC00:02x}}}"
    if unicodedata.category(character) in _HIDDEN:
        return f"\\u{{{code:x}}}"
    return character
