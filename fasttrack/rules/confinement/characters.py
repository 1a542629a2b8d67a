# SPDX-License-Identifier: Apache-2.0
"""Characters that a reader does not see, or that make a line look like another one."""

import re
import unicodedata
from collections.abc import Iterator

BIDI_CONTROLS = "\u202a-\u202e\u2066-\u2069"
"""Embeddings, overrides and isolates, as a range of a regular expression: they reorder what is
shown. The marks U+200E, U+200F and U+061C reorder nothing by themselves."""

_INVISIBLE = (
    "\x00-\x08\x0b\r\x0e-\x1f\x7f-\x9f"  # C0 and C1 controls; a CR here is not part of CR LF
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0"
    "\u200b-\u200f\u2028\u2029\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"
    "\ufe00-\ufe0f\U000e0000-\U000e0fff\U0001d173-\U0001d17a"
)
BIDI = re.compile(f"[{BIDI_CONTROLS}]")
HIDDEN = re.compile(f"[{BIDI_CONTROLS}{_INVISIBLE}]")

_FLAGS = re.compile("\U0001f3f4\U000e0067\U000e0062[\U000e0061-\U000e007a]{3}\U000e007f")
"""The flags of parts of Great Britain: the only tag sequences in general use."""
_BLACK_FLAG = "\U0001f3f4"
_EMOJI_STYLE = "\ufe0f"
_KEYCAP = "\u20e3"
_KEYS = frozenset("#*0123456789")
_SKIN_TONES = frozenset(map(chr, range(0x1F3FB, 0x1F400)))


def hidden_characters(text: str) -> Iterator[str]:
    """Invisible and reordering characters of a line, in order, without those of emoji.

    A byte order mark is one of them; callers strip it where it may stand.
    """
    if text.isascii() and text.isprintable():
        return
    shown = _FLAGS.sub(_BLACK_FLAG, text)
    for found in HIDDEN.finditer(shown):
        if not _belongs_to_emoji(shown, found.start()):
            yield found[0]


def named(character: str) -> str:
    """`U+202E RIGHT-TO-LEFT OVERRIDE`; controls, which have no name, by number alone."""
    name = unicodedata.name(character, "")
    return f"U+{ord(character):04X} {name}".rstrip()


def _belongs_to_emoji(text: str, at: int) -> bool:
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    match text[at]:
        case "\ufe0e" | "\ufe0f":
            return _is_symbol(before) or (after == _KEYCAP and before in _KEYS)
        case "\u200d":
            pictured = _is_symbol(before) or before in _SKIN_TONES | {_EMOJI_STYLE}
            return pictured and _is_symbol(after)
    return False


def _is_symbol(character: str) -> bool:
    """A character that emoji are made of: symbols, a few punctuation marks, and U+2139."""
    if not character or character.isascii():
        return False
    return unicodedata.category(character) in {"So", "Sm", "Po", "Pd"} or character == "\u2139"
